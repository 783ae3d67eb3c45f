// A point of the surface itself, also where the pixel's centre lies beside it: what neither a shadow
// nor darkness reaches may be left as it is. (Chrome needs smooth differences, and is drawn anew.)
#ifndef MIRROR
centroid
#endif
in vec3 point_in;
in vec3 normal_in;
in vec2 uv;
flat in vec4 look;
flat in vec4 glass;
flat in vec4 label;

// Where the pixel lies on the surface, its unit normal, and its base colour (linear).
void surface(out vec3 point, out vec3 n, out vec3 base) {
    point = point_in;
    n = normalize(normal_in);
    base = texture(textures, vec3(uv, look.x), -0.6).rgb;
    base *= base;
}

// Curvature of the surface [1/m], as far as neighbouring pixels tell it.
float bend(vec3 point, vec3 n) {
    vec2 turn = vec2(length(dFdx(n)), length(dFdy(n)));
    vec2 way = vec2(length(dFdx(point)), length(dFdy(point)));
    vec2 found = turn / max(way, vec2(1e-6));
    return max(found.x, found.y);
}
