// What is the same for every surface of one view. Positions are relative to the anchor, a world
// point near the camera, so that float32 keeps its digits far from the origin.
layout(std140, binding = 0) uniform Frame {
    mat4 clip;          // anchor-relative point -> clip space (reversed depth: near / z)
    vec4 eye;           // xyz: camera; w: near [m]
    vec4 ray_x;         // right times tan(half width); w: 2 / width
    vec4 ray_y;         // down times tan(half height); w: 2 / height
    vec4 ray_z;         // forward; w: far [m]
    vec4 sun;           // towards the sun; w: cosine of the sun's half width
    vec4 sun_color;     // light that arrives: 0 at night; w: exposure
    vec4 zenith;        // w: clouds
    vec4 horizon;       // w: haze [1/m]
    vec4 ground;        // the sky below the horizon
    vec4 bounce;        // light that the floor sends up
    vec4 shadow_x;      // anchor-relative point -> shadow map (x, y, depth) in [0, 1]
    vec4 shadow_y;
    vec4 shadow_z;
    vec4 shadow_info;   // kernel radius [texels], width^2 times depth a metre [m], bias [1], 1 / map size
    vec4 ground_info;   // ground map: corner x, y [m], 1 / width [1/m]; w: shadow samples
    vec4 floor_u;       // the floor's texture coordinate u at (x, y, 1); w: height of its top
    vec4 floor_v;       // its v; w: index of its piece
    vec4 fine_x;        // as shadow_x and shadow_y, of the finer map around the focus; the depth is
    vec4 fine_y;        // the same
    vec4 fine_info;     // as shadow_info
    vec4 glow;          // the sun's colour in the sky, also at dusk; w: sine of its elevation
};

