in vec3 in_position;
in vec3 in_normal;
in uint in_piece;
out vec3 normal;
flat out vec4 label;

void main() {
    Piece piece = pieces[in_piece];
    normal = turn(piece, in_normal);
    label = piece.label;
    gl_Position = clip * vec4(to_world(piece, in_position), 1.0);
    gl_ClipDistance[0] = ray_z.w - gl_Position.w;
}
