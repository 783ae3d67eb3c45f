// A square that just covers the ball's outline: every pixel is then solved exactly.
in uint in_piece;
flat out vec4 ball;
flat out vec3 turn_x, turn_y, turn_z;
flat out vec4 look;
flat out vec4 glass;
flat out vec4 label;

void main() {
    Piece piece = pieces[in_piece];
    look = piece.look;
    glass = piece.glass;
    label = piece.label;
    vec3 center = vec3(piece.row_x.w, piece.row_y.w, piece.row_z.w) - eye.xyz;
    float r = piece.label.y;
    ball = vec4(center, r);
    turn_x = piece.row_x.xyz / r;
    turn_y = piece.row_y.xyz / r;
    turn_z = piece.row_z.xyz / r;
    float d2 = dot(center, center);
    float d = sqrt(d2);
    if (d <= r * 1.0001) {              // the eye is inside: only back faces, nothing to see
        gl_Position = vec4(0.0, 0.0, 0.0, 1.0);
        gl_ClipDistance[0] = -1.0;
        return;
    }
    vec3 axis = center / d;
    float reach = sqrt(d2 - r * r);
    // A little more than the outline: samples lie up to half a pixel beside the centre.
    float side = r * reach / d * 1.001 + 1e-6 + length(ray_y.xyz) * ray_y.w * d;
    vec3 u = normalize(cross(abs(axis.z) < 0.9 ? vec3(0, 0, 1) : vec3(1, 0, 0), axis));
    vec3 v = cross(axis, u);
    vec2 corner = vec2((gl_VertexID & 1) * 2 - 1, (gl_VertexID & 2) - 1);
    vec3 p = axis * (reach * reach / d) + (u * corner.x + v * corner.y) * side;
    gl_Position = clip * vec4(p + eye.xyz, 1.0);
    gl_ClipDistance[0] = 1.0;
}
