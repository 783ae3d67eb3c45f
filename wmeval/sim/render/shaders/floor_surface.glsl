in vec3 plane;
flat in vec4 look;
flat in vec4 glass;

void surface(out vec3 point, out vec3 n, out vec3 base) {
    point = vec3(eye.xy + plane.xy / plane.z, floor_u.w);
    n = vec3(0.0, 0.0, 1.0);
    vec3 at = vec3(point.xy, 1.0);
    vec2 uv = vec2(dot(floor_u.xyz, at), dot(floor_v.xyz, at));
    base = texture(textures, vec3(uv, look.x), -0.6).rgb;
    base *= base;
}
