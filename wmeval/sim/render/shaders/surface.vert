in vec3 in_position;
in vec3 in_normal;
in vec2 in_uv;
in uint in_piece;
#ifndef MIRROR
centroid
#endif
out vec3 point_in;
out vec3 normal_in;
out vec2 uv;
flat out vec4 look;
flat out vec4 glass;
flat out vec4 label;

void main() {
    Piece piece = pieces[in_piece];
    point_in = to_world(piece, in_position);
    normal_in = turn(piece, in_normal);
    uv = in_uv * piece.look.yz;
    look = piece.look;
    glass = piece.glass;
    label = piece.label;
    gl_Position = clip * vec4(point_in, 1.0);
    gl_ClipDistance[0] = ray_z.w - gl_Position.w;
}
