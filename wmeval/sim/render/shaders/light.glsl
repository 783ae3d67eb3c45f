uniform sampler2DArray textures;
uniform sampler2DShadow shadow_map;
uniform usampler2D shadow_mask;

// Share of the sun seen from p; n is the surface normal, nl its cosine with the sun.
float sun_visibility(vec3 p, vec3 n, float nl) {
    vec4 q = vec4(p + n * (shadow_info.y * (1.4 - nl)), 1.0);
    vec3 s = vec3(dot(shadow_x, q), dot(shadow_y, q), dot(shadow_z, q) - shadow_info.z);
    // Beyond the map's edge everything is lit; the map fades out over its last twentieth.
    vec2 edge = abs(s.xy * 2.0 - 1.0);
    float rim = max(edge.x, edge.y);
    if (rim >= 1.0) return 1.0;
    // A coarse map tells where nothing can be in the way.
    if (texelFetch(shadow_mask, ivec2(s.xy * 128.0), 0).r == 0u) return 1.0;
    float r = shadow_info.x * shadow_info.w;
    float lit = texture(shadow_map, vec3(s.xy + vec2(-0.35, -0.92) * r, s.z))
              + texture(shadow_map, vec3(s.xy + vec2(0.92, -0.35) * r, s.z))
              + texture(shadow_map, vec3(s.xy + vec2(0.35, 0.92) * r, s.z))
              + texture(shadow_map, vec3(s.xy + vec2(-0.92, 0.35) * r, s.z));
    lit *= 0.25;
#ifndef CUBE
    // Only the edge of a shadow is worth more samples.
    if (lit > 0.0 && lit < 1.0) {
        lit = lit * 4.0 + texture(shadow_map, s)
            + texture(shadow_map, vec3(s.xy + vec2(-0.70, -0.05) * r, s.z))
            + texture(shadow_map, vec3(s.xy + vec2(0.05, -0.70) * r, s.z))
            + texture(shadow_map, vec3(s.xy + vec2(0.70, 0.05) * r, s.z))
            + texture(shadow_map, vec3(s.xy + vec2(-0.05, 0.70) * r, s.z));
        lit *= 1.0 / 9.0;
    }
#endif
    return mix(lit, 1.0, smoothstep(0.9, 1.0, rim));
}

vec3 ambient(vec3 n) {
    float up = n.z * 0.5 + 0.5;
    vec3 above = mix(horizon.rgb, zenith.rgb, 0.55 * up);
    return mix(bounce.rgb, above, up);
}

// Height and shape of the sun's highlight (GGX with a cheap visibility term).
float highlight(vec3 n, vec3 view, float roughness) {
    vec3 h = normalize(sun.xyz + view);
    float nh = max(dot(n, h), 0.0), lh = max(dot(sun.xyz, h), 0.1);
    float a = roughness * roughness;
    float a2 = a * a;
    float d = nh * nh * (a2 - 1.0) + 1.0;
    return min(a2 / (d * d * lh * lh * (roughness * 4.0 + 2.0)), 60.0);
}

float fresnel(float f0, float nv) {
    float m = 1.0 - nv;
    float m2 = m * m;
    return f0 + (1.0 - f0) * m2 * m2 * m;
}

vec3 haze(vec3 color, float distance_m, vec3 view) {
    float x = distance_m * horizon.w;
    float t = x * x / (1.0 + x * x);
    return mix(color, horizon.rgb, t * t);
}
