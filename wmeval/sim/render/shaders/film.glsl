// Linear light to what is shown: a filmic curve (after K. Narkowicz' rational fit of the ACES
// curve), then the square root, which is within 2 % of the sRGB curve where it matters.
vec3 film(vec3 x) {
    x *= sun_color.w;
    x = clamp(x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14), 0.0, 1.0);
    return sqrt(x);
}
