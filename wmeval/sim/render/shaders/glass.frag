layout(location = 0, index = 0) out vec4 color;
layout(location = 0, index = 1) out vec4 through;

void main() {
    vec3 point, n, base;
    surface(point, n, base);
    vec3 view = eye.xyz - point;
    float away = length(view);
    view /= away;
    float nl = dot(n, sun.xyz);
    float nv = max(dot(n, view), 0.0);
    float f0 = (glass.w - 1.0) / (glass.w + 1.0);
    float f = fresnel(f0 * f0, nv);
    float lit = sun_visibility(point, n, nl);
    vec3 r = reflect(-view, n);
    vec3 around = r.z > 0.0 ? sky_full(r) : mix(horizon.rgb * 0.8, bounce.rgb, min(1.0, -4.0 * r.z));
    // Light that entered elsewhere leaves towards the eye: brightest opposite to the sun's entry.
    float glow = 0.5 - 0.5 * nl;
    vec3 body = base * (ambient(n) * 0.6 + sun_color.rgb * (0.35 * glow * glow));
    vec3 result = around * f + body * (glass.z * (1.0 - f));
    result += sun_color.rgb * (lit * max(nl, 0.0) * f0 * f0 * highlight(n, view, max(look.w, 0.08)));
    // Longer paths near the rim absorb more.
    vec3 tint = mix(vec3(1.0), sqrt(base), 0.35 + 0.5 * (1.0 - nv));
    color = vec4(film(haze(result, away * away * dot(view.xy, view.xy) * horizon.w)), 1.0);
    through = vec4(tint * ((1.0 - f) * (1.0 - glass.z)), 0.0);
}
