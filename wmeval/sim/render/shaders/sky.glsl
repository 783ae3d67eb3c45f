uniform sampler2D clouds;
#ifdef PANORAMA
uniform sampler2D panorama;
#endif

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

// What a low sun adds to the sky, and what its absence takes: nothing of it under a high one.
vec3 dusk(vec3 color, vec3 d) {
    float low = 1.0 - smoothstep(0.08, 0.42, glow.w);
    if (low == 0.0) return color;
    float s = max(dot(d, sun.xyz), 0.0);
    float s4 = s * s * s * s, s16 = s4 * s4 * s4 * s4;
    float s64 = s16 * s16 * s16 * s16, s256 = s64 * s64 * s64 * s64;
    float toward = 0.5 + 0.5 * dot(d.xy, sun.xy) * inversesqrt(dot(d.xy, d.xy) * dot(sun.xy, sun.xy) + 1e-9);
    float band = exp2(-11.0 * abs(d.z));
    // Opposite to the sun lies the shadow of the earth, blue under a rosy belt.
    vec3 far_side = mix(vec3(1.0), vec3(0.62, 0.60, 0.86), band * (1.0 - toward));
    color *= mix(vec3(1.0), far_side, low);
    color += glow.rgb * low * (0.30 * band * toward * toward + 0.10 * s16 + 0.30 * s64 + 0.6 * s256);
    // By night the sky is darker than the light that a picture of the ground needs.
    return color * mix(0.26, 1.0, smoothstep(-0.34, -0.03, glow.w));
}

// Sky with clouds and the sun's disc.
vec3 sky_full(vec3 d) {
    vec3 color = dusk(sky_gradient(d), d);
    // A flat layer of clouds overhead; the offset keeps the horizon's perspective finite.
    vec2 uv = d.xy / (max(d.z, 0.0) + 0.14) * 0.16 + vec2(0.13, 0.41);
    vec2 c = texture(clouds, uv).rg;
    float cover = zenith.w;
    float density = smoothstep(0.78 - 0.62 * cover, 1.12 - 0.55 * cover, c.r);
    density *= smoothstep(0.01, 0.13, d.z) * min(1.0, 3.0 * cover) * 0.92;
    float s = max(dot(d, sun.xyz), 0.0);
    vec3 light = horizon.rgb * smoothstep(-0.5, -0.03, glow.w) + glow.rgb * (0.34 + 0.1 * c.g + 0.25 * s * s * s * s);
    color = mix(color, light * (0.82 + 0.3 * c.g), density);
    float disc = smoothstep(sun.w, sun.w * 0.3 + 0.7, dot(d, sun.xyz));
    // Also a sun that no longer lights the ground is seen, as far as it is above the horizon.
    // A low sun can be looked at: it is not yet white.
    float blaze = mix(1.3, 6.0, smoothstep(0.04, 0.3, glow.w));
#ifdef PANORAMA
    // What stands around at infinity: reflectances, lit by the sun and the sky.
    float climb = asin(clamp(d.z, -1.0, 1.0)) * 57.2957795;
    vec2 at = vec2(atan(d.x, d.y) * (0.159154943 * PANORAMA) + 0.5, (12.0 - climb) / 38.0);
    vec4 land = textureLod(panorama, at, 0.35);
    vec3 lit_land = land.rgb * land.rgb * (sun_color.rgb * (0.40 * max(sun.z, 0.0)) + horizon.rgb * 0.62);
    // Below the band the ground goes on without detail.
    color += glow.rgb * (blaze * disc * (1.0 - density) * smoothstep(-0.002, 0.002, d.z));
    return mix(color, lit_land, climb > 11.5 ? 0.0 : land.a);
#else
    return color + glow.rgb * (blaze * disc * (1.0 - density) * smoothstep(-0.002, 0.002, d.z));
#endif
}
