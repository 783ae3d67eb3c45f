out vec4 color;
uniform float cube_reach;
uniform samplerCube surroundings;
uniform vec4 cube_center;   // xyz: anchor-relative; w: blur level of roughness 1

void main() {
    vec3 point, n, base;
    surface(point, n, base);
    vec3 view = eye.xyz - point;
    float away = length(view);
    view /= away;
    float nl = dot(n, sun.xyz);
    float nv = max(dot(n, view), 0.0);
    float lit = max(nl, 0.0) * sun_visibility(point, n, nl);
    vec3 r = reflect(-view, n);
    // The cube map is seen from the centre; its alpha tells how far things are, so the point that
    // the reflected ray meets is found by a few fixed-point steps.
    vec3 from = point - cube_center.xyz;
    vec3 toward = r;
    // A pixel of a round mirror shows an angle that grows without end towards the rim: the level
    // of the cube map whose texels are half as wide, so that nothing falls between them.
    float pixel = length(ray_y.xyz) * ray_y.w;
    float wide = pixel * (1.0 + 2.0 * away * bend(point, n) / max(nv, 0.06));
    float texels = wide * exp2(cube_center.w) * 1.27324;
    float blur = max(look.w * cube_center.w, log2(max(texels, 1e-6)) - 1.0);
    vec4 seen = vec4(0.0);
    for (int i = 0; i < 3; i++) {
        seen = textureLod(surroundings, toward, blur);
        float reach = cube_reach * (1.0 / max(seen.a, 1e-3) - 1.0);
        vec3 flat_from = from - r * dot(from, r);
        float along = sqrt(max(reach * reach - dot(flat_from, flat_from), 0.0)) - dot(from, r);
        toward = from + r * max(along, 0.0);
    }
    vec3 reflected = seen.rgb * seen.rgb * 4.0;
    float open = openness(point, n);
    // Polished metal gives back four fifths of its colour, and all of it at the rim.
    vec3 tint = mix(base * 0.8, vec3(1.0), fresnel(0.0, nv) * 0.7);
    vec3 diffuse = base * (sun_color.rgb * lit + ambient(n) * open);
    vec3 result = mix(diffuse, reflected * tint * (0.45 + 0.55 * open), glass.y);
    result += sun_color.rgb * (0.25 * lit * highlight(n, view, max(look.w, 0.12)));
    color = vec4(film(haze(result, away * away * dot(view.xy, view.xy) * horizon.w)), 1.0);
}
