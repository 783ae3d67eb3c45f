in vec3 in_position;
in uint in_piece;
flat out uint instance;

void main() {
    Piece piece = pieces[in_piece];
    vec4 q = vec4(to_world(piece, in_position), 1.0);
    instance = uint(piece.label.x);
    gl_Position = vec4(dot(shadow_x, q) * 2.0 - 1.0, dot(shadow_y, q) * 2.0 - 1.0, dot(shadow_z, q), 1.0);
}
