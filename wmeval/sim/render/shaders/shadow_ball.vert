// Seen from the sun a sphere is a disc.
in uint in_piece;
flat out uint instance;
flat out vec2 depth_scale;
out vec2 corner;

void main() {
    Piece piece = pieces[in_piece];
    vec4 center = vec4(piece.row_x.w, piece.row_y.w, piece.row_z.w, 1.0);
    instance = uint(piece.label.x);
    float r = piece.label.y;
    corner = vec2((gl_VertexID & 1) * 2 - 1, (gl_VertexID & 2) - 1);
    vec2 scale = vec2(length(shadow_x.xyz), length(shadow_y.xyz)) * r;
    vec2 xy = vec2(dot(shadow_x, center), dot(shadow_y, center)) + corner * scale;
    depth_scale = vec2(dot(shadow_z, center), length(shadow_z.xyz) * r);
    gl_Position = vec4(xy * 2.0 - 1.0, depth_scale.x, 1.0);
}
