#ifdef CUBE
uniform float cube_reach;
#endif
out vec4 color;

void main() {
    vec3 point, n, base;
    surface(point, n, base);
    vec3 view = eye.xyz - point;
    float far = dot(view.xy, view.xy) * horizon.w;
#if !defined(MATTE) || defined(CUBE)
    float away = length(view);
    view /= away;
#endif
    float nl = dot(n, sun.xyz);
    float lit = max(nl, 0.0) * sun_visibility(point, n, nl);
    float open = openness(point, n);
    vec3 result = base * (sun_color.rgb * lit + ambient(n) * open);
#if !defined(CUBE) && !defined(MATTE)
    float gloss = max(1.0 - look.w / 0.7, 0.0);
    result += sun_color.rgb * (lit * glass.x * highlight(n, view, look.w));
    vec3 r = reflect(-view, n);
    vec3 around = r.z > 0.0 ? sky_gradient(r)
                            : mix(horizon.rgb * 0.8, bounce.rgb, min(1.0, -4.0 * r.z));
    result += around * (fresnel(glass.x, max(dot(n, view), 0.0)) * gloss * gloss * open);
#endif
    result = haze(result, far);
#ifdef CUBE
    color = vec4(sqrt(result * 0.25), cube_reach / (cube_reach + away));
#else
    color = vec4(film(result), 1.0);
#endif
}
