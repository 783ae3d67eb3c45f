// The floor's top as one triangle over the whole picture. Across the picture the inverse of a
// plane's depth is linear, so depth and position need nothing but plain interpolation, and a pixel
// gets the same bits whichever rectangle it is drawn in.
out vec3 plane;         // ray, and one over its depth on the floor
flat out vec4 look;
flat out vec4 glass;
flat out vec4 label;

void main() {
    vec2 ndc = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
    vec3 ray = ray_z.xyz + ndc.x * ray_x.xyz + ndc.y * ray_y.xyz;
    plane = vec3(ray.xy, ray.z / (floor_u.w - eye.z));
    Piece piece = pieces[int(floor_v.w)];
    look = piece.look;
    glass = piece.glass;
    label = piece.label;
    gl_Position = vec4(ndc, eye.w * plane.z, 1.0);
}
