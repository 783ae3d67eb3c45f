// A rectangle around all of the ground that a piece takes light from.
in uint in_piece;
out vec2 place;
flat out uint number;

void main() {
    Piece o = pieces[in_piece];
    number = in_piece;
    float r = o.label.y, up = o.row_z.w - bounce.w;
    vec2 reach = vec2(sqrt(max(3.0625 * r * r - up * up, 0.0)));    // as in dirty.py
    if (r == 0.0)
        reach = vec2(dot(abs(o.row_x.xyz), o.half_size.xyz), dot(abs(o.row_y.xyz), o.half_size.xyz))
              + o.half_size.w;
    vec2 corner = vec2((gl_VertexID & 1) * 2 - 1, (gl_VertexID & 2) - 1);
    place = vec2(o.row_x.w, o.row_y.w) + corner * reach;
    gl_Position = vec4((place - ground_info.xy) * ground_info.z * 2.0 - 1.0, 0.0, 1.0);
}
