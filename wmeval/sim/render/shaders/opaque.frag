out vec4 color;

void main() {
    vec3 point, n, base;
    surface(point, n, base);
    vec3 view = eye.xyz - point;
    float away = length(view);
    view /= away;
    float nl = dot(n, sun.xyz);
    float nv = max(dot(n, view), 0.0);
    float lit = nl > 0.0 ? nl * sun_visibility(point, n, nl) : 0.0;
    float open = openness(point, n);
    vec3 result = base * (sun_color.rgb * lit + ambient(n) * open);
#ifndef CUBE
    float gloss = max(1.0 - look.w * 1.4, 0.0);
    if (gloss > 0.0) {
        result += sun_color.rgb * (lit * glass.x * highlight(n, view, look.w));
        vec3 r = reflect(-view, n);
        vec3 around = r.z > 0.0 ? sky_gradient(r)
                                : mix(horizon.rgb * 0.8, bounce.rgb, min(1.0, -4.0 * r.z));
        result += around * (fresnel(glass.x, nv) * gloss * gloss * open);
    }
#endif
    result = haze(result, away, view);
#ifdef CUBE
    color = vec4(sqrt(result * 0.25), cube_reach / (cube_reach + away));
#else
    color = vec4(film(result), 1.0);
#endif
}
