// One drawn piece of a body.
struct Piece {
    vec4 row_x, row_y, row_z;   // piece -> anchor-relative world
    vec4 look;                  // texture layer, repeats along u, along v, roughness
    vec4 glass;                 // reflectance at normal incidence, mirror, opacity, refractive index
    vec4 label;                 // instance, radius of a ball [m], own number (from 1), 1 if two-sided
    vec4 half_size;             // half extents [m]; w: how far it darkens its surroundings [m]
};
layout(std430, binding = 1) readonly buffer Pieces { Piece pieces[]; };

vec3 to_world(Piece piece, vec3 p) {
    vec4 q = vec4(p, 1.0);
    return vec3(dot(piece.row_x, q), dot(piece.row_y, q), dot(piece.row_z, q));
}

vec3 turn(Piece piece, vec3 v) {
    return vec3(dot(piece.row_x.xyz, v), dot(piece.row_y.xyz, v), dot(piece.row_z.xyz, v));
}
