in vec3 in_position;
in vec3 in_normal;
in uint in_piece;
flat out uint instance;

void main() {
    Piece piece = pieces[in_piece];
    vec4 q = vec4(to_world(piece, in_position), 1.0);
    instance = uint(piece.label.x);
    float depth = dot(shadow_z, q);
    if (piece.label.w > 0.0) {
        // Both sides lie in one plane: moved along the light by what a texel of it rises, the map
        // still has the same outline, and the side in the sun does not shade itself.
        float nl = max(abs(dot(turn(piece, in_normal), sun.xyz)), 0.15);
        float texel = shadow_info.z * 50.0;     // in depths: the bias is a fiftieth of it
        depth += texel * (0.5 + 2.0 * sqrt(1.0 - min(nl * nl, 1.0)) / nl);
    }
    gl_Position = vec4(dot(shadow_x, q) * 2.0 - 1.0, dot(shadow_y, q) * 2.0 - 1.0, depth, 1.0);
}
