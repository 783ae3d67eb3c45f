flat in uint instance;
flat in vec2 depth_scale;
in vec2 corner;
#ifdef IDS
out uint code;
#endif

void main() {
    float left = 1.0 - dot(corner, corner);
    if (left < 0.0) discard;
    gl_FragDepth = clamp(depth_scale.x + depth_scale.y * sqrt(left), 0.0, 1.0);
#ifdef IDS
    code = instance;
#endif
}
