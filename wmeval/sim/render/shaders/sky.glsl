uniform sampler2D clouds;

// Sky without clouds; also what glossy surfaces reflect. d is a unit vector.
vec3 sky_gradient(vec3 d) {
    float low = 1.0 - abs(d.z);
    float low2 = low * low;
    // Seen directly the sky is brighter than its share of the ambient light.
    float low4 = low2 * low2;
    vec3 above = mix(zenith.rgb * 1.45, horizon.rgb * 1.6, low4 * low4 * 0.75 + low2 * 0.25);
    float s = max(dot(d, sun.xyz), 0.0);
    float s2 = s * s, s4 = s2 * s2, s8 = s4 * s4;
    float s32 = s8 * s8 * s8 * s8;
    above += glow.rgb * (0.035 * s8 + 0.07 * s32);
    return mix(above, ground.rgb, smoothstep(0.0, 0.25, -d.z));
}

// Sky with clouds and the sun's disc.
vec3 sky_full(vec3 d) {
    vec3 color = sky_gradient(d);
    // A flat layer of clouds overhead; the offset keeps the horizon's perspective finite.
    vec2 uv = d.xy / (max(d.z, 0.0) + 0.14) * 0.16 + vec2(0.13, 0.41);
    vec2 c = texture(clouds, uv).rg;
    float cover = zenith.w;
    float density = smoothstep(0.78 - 0.62 * cover, 1.12 - 0.55 * cover, c.r);
    density *= smoothstep(0.01, 0.13, d.z) * min(1.0, 3.0 * cover) * 0.92;
    float s = max(dot(d, sun.xyz), 0.0);
    vec3 light = horizon.rgb * 1.0 + sun_color.rgb * (0.34 + 0.1 * c.g + 0.25 * s * s * s * s);
    color = mix(color, light * (0.82 + 0.3 * c.g), density);
    float disc = smoothstep(sun.w, sun.w * 0.3 + 0.7, dot(d, sun.xyz));
    // Also a sun that no longer lights the ground is seen, as far as it is above the horizon.
    return color + glow.rgb * (6.0 * disc * (1.0 - density) * smoothstep(-0.002, 0.002, d.z));
}
