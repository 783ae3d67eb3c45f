flat in vec4 ball;              // centre relative to the eye, radius
flat in vec3 turn_x, turn_y, turn_z;    // rows: piece -> world
flat in vec4 look;
flat in vec4 glass;
flat in vec4 label;
uniform int sample_count;
uniform vec2 sample_at[8];

// atan(y, x) in turns; error below 0.001 rad.
float turns(float y, float x) {
    float ax = abs(x), ay = abs(y);
    float a = min(ax, ay) / max(max(ax, ay), 1e-9);
    float s = a * a;
    float r = ((-0.0464964749 * s + 0.15931422) * s - 0.327622764) * s * a + a;
    if (ay > ax) r = 1.57079633 - r;
    if (x < 0.0) r = 3.14159265 - r;
    return (y < 0.0 ? -r : r) * 0.159154943;
}

// acos(x) in half turns; error below 0.0001 rad.
float half_turns(float x) {
    float a = abs(x);
    float r = ((-0.0187293 * a + 0.0742610) * a - 0.2121144) * a + 1.5707288;
    r *= sqrt(max(1.0 - a, 0.0)) * 0.318309886;
    return x < 0.0 ? 1.0 - r : r;
}

vec3 ray_at(vec2 fragment) {
    vec2 ndc = fragment * vec2(ray_x.w, ray_y.w) - 1.0;
    return ray_z.xyz + ndc.x * ray_x.xyz + ndc.y * ray_y.xyz;
}

// How deep a ray passes inside the ball: negative misses it; in units of its radius squared.
float inside(vec3 ray) {
    float along = dot(ball.xyz, ray) / dot(ray, ray);
    vec3 miss = ball.xyz - ray * along;
    return 1.0 - dot(miss, miss) / (ball.w * ball.w);
}

void surface(out vec3 point, out vec3 n, out vec3 base) {
    vec3 ray = ray_at(gl_FragCoord.xy);
    float inverse = inversesqrt(dot(ray, ray));
    vec3 d = ray * inverse;
    float along = dot(ball.xyz, d);
    vec3 miss = ball.xyz - d * along;
    float left = ball.w * ball.w - dot(miss, miss);
#ifdef SAMPLES
    // Samples of a pixel that the outline crosses are covered one by one.
    float pixel = length(ray_y.xyz) * ray_y.w * along / ball.w;
    bool rim = left < 3.0 * pixel * ball.w * ball.w;
    int mask = rim ? 0 : -1;
    vec2 corner = floor(gl_FragCoord.xy);
    for (int i = 0; i < sample_count; i++) {
        if (!rim) break;
        if (inside(ray_at(corner + sample_at[i])) >= 0.0) mask |= 1 << i;
    }
    if (mask == 0) discard;
    gl_SampleMask[0] = mask;
#else
    if (left < 0.0) discard;
#endif
    float t = along - sqrt(max(left, 0.0));
    float z = t * inverse;
    if (z < eye.w || z > ray_z.w) discard;
    gl_FragDepth = eye.w / z;
    vec3 from = d * t;
    point = from + eye.xyz;
    n = normalize(from - ball.xyz);
    vec3 own = vec3(
        turn_x.x * n.x + turn_y.x * n.y + turn_z.x * n.z,
        turn_x.y * n.x + turn_y.y * n.y + turn_z.y * n.z,
        turn_x.z * n.x + turn_y.z * n.y + turn_z.z * n.z);
    vec2 uv = vec2(turns(own.y, own.x) * look.y, half_turns(own.z) * look.z);
    // Texels a pixel: rows are denser than columns except near the poles; the rim is foreshortened.
    float waist = max(sqrt(max(1.0 - own.z * own.z, 0.0)), 0.02);
    float dense = max(look.z, 0.5 * look.y / waist) * float(textureSize(textures, 0).x) * 0.318309886;
    float facing = max(-dot(n, d), 0.08);
    float texels = dense * length(ray_y.xyz) * ray_y.w * z / ball.w;
    base = textureLod(textures, vec3(uv, look.x), log2(texels) - 0.5 * log2(facing) - 0.4).rgb;
    base *= base;
}

// Curvature of the surface [1/m].
float bend(vec3 point, vec3 n) { return 1.0 / ball.w; }
