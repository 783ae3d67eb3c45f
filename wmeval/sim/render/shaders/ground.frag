// How much light one piece leaves to the ground; the products of all are the ground map.
in vec2 place;
flat in uint number;
out float open;

void main() {
    Piece o = pieces[number];
    vec3 to = vec3(o.row_x.w, o.row_y.w, o.row_z.w) - vec3(place, bounce.w);
    float r = o.label.y;
    float hidden;
    if (r > 0.0) {
        // A ball hides the cosine-weighted solid angle r^2/d^2 cos, faded out at its reach.
        float d2 = max(dot(to, to), 1e-6);
        float fade = clamp((3.0625 - d2 / (r * r)) / 2.0625, 0.0, 1.0);
        hidden = max(to.z, 0.0) * r * r * inversesqrt(d2) / d2 * fade;
    } else {
        // Anything else as its bounding box: how much of a feeler straight up it swallows.
        float reach = o.half_size.w;
        vec3 q = vec3(0.0, 0.0, reach) - to;
        vec3 own = abs(vec3(
            o.row_x.x * q.x + o.row_y.x * q.y + o.row_z.x * q.z,
            o.row_x.y * q.x + o.row_y.y * q.y + o.row_z.y * q.z,
            o.row_x.z * q.x + o.row_y.z * q.y + o.row_z.z * q.z)) - o.half_size.xyz;
        float away = length(max(own, 0.0)) + min(max(own.x, max(own.y, own.z)), 0.0);
        float share = clamp(1.0 - away / reach, 0.0, 1.0);
        hidden = 0.75 * share * share;
    }
    open = 1.0 - min(0.9 * hidden, 0.92);
}
