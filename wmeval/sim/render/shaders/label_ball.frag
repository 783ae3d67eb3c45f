flat in vec4 ball;
flat in vec4 label;
#ifdef IDS
out uint code;
#else
out ivec4 code;
#endif

void main() {
    vec2 ndc = gl_FragCoord.xy * vec2(ray_x.w, ray_y.w) - 1.0;
    vec3 ray = ray_z.xyz + ndc.x * ray_x.xyz + ndc.y * ray_y.xyz;
    float inverse = 1.0 / length(ray);
    vec3 d = ray * inverse;
    float along = dot(ball.xyz, d);
    vec3 miss = ball.xyz - d * along;   // numerically kind: no difference of large squares
    float left = ball.w * ball.w - dot(miss, miss);
    if (left < 0.0) discard;
    float t = along - sqrt(left);
    float z = t * inverse;
    if (z < eye.w || z > ray_z.w) discard;
    vec3 n = (d * t - ball.xyz) / ball.w;
    int id = int(label.x);
#ifdef IDS
    code = uint(id);
#else
    code = ivec4(ivec3(round(normalize(n) * 32767.0)), (id << 16) >> 16);
#endif
    gl_FragDepth = eye.w / z;
}
