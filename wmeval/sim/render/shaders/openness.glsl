// Share of the ambient light that reaches a point past the bodies beside it.
#if defined(CUBE) || defined(PLAIN)
float openness(vec3 p, vec3 n) { return 1.0; }
#else
uniform sampler2D ground_map;   // for points on the ground, seen from above

float openness(vec3 p, vec3 n) {
    float above = p.z - bounce.w;
    // The ground takes light from what hangs low over it and looks down.
    float down = 0.5 - 0.5 * n.z;
    float open = 1.0 - 0.62 * down * down * exp2(-3.0 * max(above, 0.0));
    float near = max(n.z, 0.0) * clamp(2.0 - 10.0 * abs(above), 0.0, 1.0);
    vec2 at = (p.xy - ground_info.xy) * ground_info.z;
    vec2 edge = abs(at * 2.0 - 1.0);
    near *= 1.0 - smoothstep(0.92, 1.0, max(edge.x, edge.y));
    float ground = texture(ground_map, at).r;
    return open * (1.0 - near * (1.0 - ground));    // exactly 1 where nothing is near
}
#endif
