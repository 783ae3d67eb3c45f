uniform sampler2DArray textures;
uniform sampler2DShadow shadow_map;
uniform usampler2D shadow_mask;

// Share of the sun seen from p; n is the surface normal, nl its cosine with the sun.
#if defined(PLAIN) || defined(LIT)
float sun_visibility(vec3 p, vec3 n, float nl) { return 1.0; }
#else
// Share of the light that passes at s, a place in one of the sun's maps: its frame's rows are x and
// y, and info; in the texture it is a strip of a width that starts somewhere.
float passes(vec3 s, vec3 n, float nl, vec3 x, vec3 y, vec4 info, vec2 strip, bool open) {
    // Software drivers run both sides of an `if` under a mask, but they do leave a loop that no
    // pixel of a group goes on with: four samples around, and five more at a shadow's edge only.
    vec2 spoke = vec2(-0.35, -0.92) * (info.x * info.w);
    int taps = open ? 0 : int(ground_info.w);  // from memory, or the compiler unrolls the loop
    float sum = 0.0, count = 0.0;
    // How much deeper the surface lies under a sample beside p: shadows then reach up to the point
    // where a ball touches the ground.
    vec2 slope = vec2(dot(x, n), dot(y, n)) * (info.y / max(nl, 0.15));
    for (int i = 0; i < taps; i++) {
        vec2 at = s.xy + spoke;
#ifdef FOCUS
        at.x = at.x * strip.x + strip.y;
#endif
        sum += texture(shadow_map, vec3(at, s.z + dot(slope, spoke)));
        count += 1.0;
        if (i == 3 && (sum == 0.0 || sum == 4.0)) break;
        spoke = vec2(-spoke.y, spoke.x);
        if (i == 3) spoke *= 0.7;
        if (i == 7) spoke = vec2(0.0);
    }
    // A division would not be exact on every driver.
    float share = count > 4.5 ? 1.0 / 9.0 : 0.25;
    return sum * share;
}

// Whether nothing can be in the way: a coarse map tells.
bool open_at(vec2 s, int first) {
    ivec2 cell = clamp(ivec2(s * 256.0), 0, 255);
    return texelFetch(shadow_mask, ivec2(cell.x + first, cell.y), 0).r == 0u;
}

float sun_visibility(vec3 p, vec3 n, float nl) {
    vec4 q = vec4(p, 1.0);
    vec3 s = vec3(dot(shadow_x, q), dot(shadow_y, q), dot(shadow_z, q) - shadow_info.z);
    // Beyond the map's edge everything is lit; the map fades out over its last twentieth.
    vec2 edge = abs(s.xy * 2.0 - 1.0);
    float rim = max(edge.x, edge.y);
    bool open = nl <= 0.0 || rim >= 1.0 || open_at(s.xy, 0);
    // Exactly 1 where all samples are lit, so that it does not matter how close the coarse map is.
    float fades = 1.0 - smoothstep(0.9, 1.0, rim);
#ifdef FOCUS
    // The finer map lies right of the other, which takes over from it towards its edge.
    vec3 f = vec3(dot(fine_x, q), dot(fine_y, q), dot(shadow_z, q) - fine_info.z);
    edge = abs(f.xy * 2.0 - 1.0);
    rim = max(edge.x, edge.y);
    float coarse = smoothstep(FOCUS, FOCUS_EDGE, rim);
    bool bare = nl <= 0.0 || coarse >= 1.0 || open_at(f.xy, 256);
    float near = passes(f, n, nl, fine_x.xyz, fine_y.xyz, fine_info, vec2(0.5, 0.5), bare);
    open = open || coarse <= 0.0;
    float far = passes(
        s, n, nl, shadow_x.xyz, shadow_y.xyz, shadow_info, vec2(0.5, 0.0), open
    );
    float dark = open ? 0.0 : (1.0 - far) * fades * coarse;
    return 1.0 - (dark + (bare ? 0.0 : (1.0 - near) * (1.0 - coarse)));
#else
    float light = passes(s, n, nl, shadow_x.xyz, shadow_y.xyz, shadow_info, vec2(1.0, 0.0), open);
    return open ? 1.0 : 1.0 - (1.0 - light) * fades;
#endif
}
#endif

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

// Distance along the ground melts into the horizon; x is that distance in hazes, squared.
vec3 haze(vec3 color, float x) {
    float t = x / (1.0 + x);
    return mix(color, horizon.rgb * 1.6, t * t);
}
