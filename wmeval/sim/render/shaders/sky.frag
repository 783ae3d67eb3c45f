in vec2 ndc;
out vec4 color;

void main() {
    vec3 d = normalize(ray_z.xyz + ndc.x * ray_x.xyz + ndc.y * ray_y.xyz);
#ifdef CUBE
    color = vec4(sqrt(min(sky_full(d), 4.0) * 0.25), 0.0);
#else
    color = vec4(film(sky_full(d)), 1.0);
#endif
}
