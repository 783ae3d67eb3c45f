// A glass vessel of revolution with liquid in it, traced through both walls and the surface.
// Everything is in the vessel's frame; n_x are unit vectors, d directions of light's way back.
layout(location = 0, index = 0) out vec4 color;
layout(location = 0, index = 1) out vec4 through;
uniform sampler2D vessel_map;       // distance to the cavity's wall, its gradient, to the outer wall
uniform vec4 vessel_grid;           // width, lowest z, height of the map [m]; w: thickness of a line
uniform vec4 body_x, body_y, body_z;    // anchor-relative world -> vessel: rows
uniform vec4 up_level;              // up; height of the mean surface along it
uniform vec3 middle, along, across; // centre of the level section; its axes over their lengths
uniform vec2 half_axes;
uniform vec2 slopes[3];
uniform vec3 cylinder;              // radius; lowest and highest z of the cavity's upright wall [m]
uniform vec4 liquid;                // absorption [1/m]; refractive index
uniform vec2 series[12];
uniform vec4 floor_half;            // half extents x, y [m] of the floor; w: 1 where there is one

vec4 walls(vec3 p) {
    return texture(vessel_map, vec2(length(p.xy) / vessel_grid.x, (p.z - vessel_grid.y) / vessel_grid.z));
}

// The cavity's wall seen from inside: unit normal away from the axis.
vec3 wall_normal(vec3 p) {
    vec2 g = walls(p).yz;
    vec2 out_of = p.xy / max(length(p.xy), 1e-5);
    return normalize(-vec3(out_of * g.x, g.y));
}

float rise(vec2 at) {
    float r2 = dot(at, at);
    float q2 = min(r2, 1.0);
    vec2 g = vec2(0.0);
    for (int i = 11; i >= 0; i--) g = g * q2 + series[i];
    g *= r2 > 1.0 ? inversesqrt(r2) : 1.0;
    vec3 share = vec3(g, 1.0 - g.x - g.y);
    return share.x * dot(slopes[0], at) + share.y * dot(slopes[1], at) + share.z * dot(slopes[2], at);
}

vec2 place(vec3 p) {
    return vec2(dot(p - middle, along), dot(p - middle, across));
}

// Height over the liquid's surface.
float over(vec3 p) {
    return dot(p, up_level.xyz) - up_level.w - rise(place(p));
}

vec3 surface_normal(vec3 p) {
    vec2 at = place(p);
    float e = 0.02, h = rise(at);
    float du = (rise(at + vec2(e, 0.0)) - h) / e, dv = (rise(at + vec2(0.0, e)) - h) / e;
    return normalize(up_level.xyz - du * along - dv * across);
}

// Ends of the way of a ray through the endless cylinder; less than no way where it misses it.
vec2 in_cylinder(vec3 p, vec3 d) {
    float a = max(dot(d.xy, d.xy), 1e-9), b = dot(p.xy, d.xy);
    float under = b * b + a * (cylinder.x * cylinder.x - dot(p.xy, p.xy));
    float root = sqrt(max(under, 0.0));
    return under < 0.0 ? vec2(1.0, -1.0) : vec2(-b - root, -b + root) / a;
}

bool on_cylinder(float z) { return z > cylinder.y && z < cylinder.z; }

// Way through the cavity to its wall: exact on the cylinder, elsewhere in steps of the distance.
// Software drivers leave a loop when no pixel of a group goes on with it.
float to_wall(vec3 p, vec3 d) {
    float exact = in_cylinder(p, d).y;
    bool done = on_cylinder(p.z + d.z * exact);
    float t = done ? exact : 0.0008;
    for (int i = 0; i < 22; i++) {
        if (done) break;
        float s = walls(p + d * t).x;
        t += max(s, -0.002) * 0.96;
        done = abs(s) < 0.0001;
    }
    return t;
}

// Crossing of the surface on a way of length t1, beyond t1 where there is none.
float to_surface(vec3 p, vec3 d, float t1) {
    float t0 = 0.0005;
    float f0 = over(p + d * t0), f1 = over(p + d * t1);
    if (f0 * f1 >= 0.0) return t1 + 1.0;
    float a = t0, b = t1;
    for (int i = 0; i < 5; i++) {
        float m = clamp(a - f0 * (b - a) / (f1 - f0), mix(a, b, 0.02), mix(a, b, 0.98));
        float f = over(p + d * m);
        bool left = f * f0 > 0.0;
        a = left ? m : a; b = left ? b : m;
        f0 = left ? f : f0 * 0.7; f1 = left ? f1 * 0.7 : f;
    }
    return 0.5 * (a + b);
}

// Refraction that never fails; true where all light is reflected.
bool bend(inout vec3 d, vec3 n, float eta) {
    vec3 r = refract(d, n, eta);
    bool all = dot(r, r) < 0.5;
    d = all ? reflect(d, n) : r;
    return all;
}

float reflectance(float cosine, float n1, float n2) {
    float f0 = (n1 - n2) / (n1 + n2);
    return fresnel(f0 * f0, clamp(cosine, 0.0, 1.0));
}

vec3 to_world_way(vec3 d) { return body_x.xyz * d.x + body_y.xyz * d.y + body_z.xyz * d.z; }

vec3 world_point(vec3 p) {
    return to_world_way(p - vec3(body_x.w, body_y.w, body_z.w));
}

// What a ray sees that left the vessel: the floor's top with its light and shadows, else the sky.
vec3 background(vec3 p, vec3 d, float footprint) {
    vec3 seen = sky_full(d);
    float t = (floor_u.w - p.z) / min(d.z, -1e-3);
    vec3 at = vec3(p.xy + d.xy * t, floor_u.w);
    Piece ground_piece = pieces[int(floor_v.w)];
    vec2 local = at.xy - vec2(ground_piece.row_x.w, ground_piece.row_y.w);
    // A pixel's footprint there: its neighbours tell; where the way breaks off, the least possible.
    float spread = 0.55 * (length(dFdx(at.xy)) + length(dFdy(at.xy)));
    bool hit = floor_half.w > 0.5 && d.z < -1e-3 && all(lessThan(abs(local), floor_half.xy));
    if (hit) {
        vec3 flat_at = vec3(at.xy, 1.0);
        vec2 uv_at = vec2(dot(floor_u.xyz, flat_at), dot(floor_v.xyz, flat_at));
        float texels = length(floor_u.xy) * float(textureSize(textures, 0).x);
        float least = footprint * (1.0 + t) * inversesqrt(max(-d.z, 0.05));
        float lod = log2(max(texels * clamp(spread, 0.5 * least, 24.0 * least), 1e-3));
        vec3 ground_base = textureLod(textures, vec3(uv_at, ground_piece.look.x), lod).rgb;
        ground_base *= ground_base;
        vec3 n = vec3(0.0, 0.0, 1.0);
        float lit = max(sun.z, 0.0) * sun_visibility(at, n, sun.z);
        seen = ground_base * (sun_color.rgb * lit + ambient(n) * openness(at, n));
    }
    return seen;
}

void main() {
    vec3 point, n_world, base;
    surface(point, n_world, base);
    vec3 view = eye.xyz - point;
    float away = length(view);
    view /= away;
    vec3 p = vec3(dot(body_x.xyz, point), dot(body_y.xyz, point), dot(body_z.xyz, point))
        + vec3(body_x.w, body_y.w, body_z.w);
    vec3 n = vec3(dot(body_x.xyz, n_world), dot(body_y.xyz, n_world), dot(body_z.xyz, n_world));
    vec3 d = -vec3(dot(body_x.xyz, view), dot(body_y.xyz, view), dot(body_z.xyz, view));
    float pixel = length(ray_y.xyz) * ray_y.w * away;     // a pixel's size on the vessel [m]
    const float GLASS_N = 1.5;

    // The outer wall's own reflection.
    float nv = max(dot(n_world, view), 0.0);
    float mirror = reflectance(nv, 1.0, GLASS_N);
    vec3 r = reflect(-view, n_world);
    vec3 shine = sky_full(r);
    shine = r.z < 0.0 ? mix(shine, bounce.rgb * 1.2, smoothstep(0.0, 0.35, -r.z)) : shine;
    vec3 result = shine * mirror;
    float nl = dot(n_world, sun.xyz);
    float lit = sun_visibility(point, n_world, nl) * max(nl, 0.0);
    result += sun_color.rgb * (0.05 * lit * highlight(n_world, view, 0.09));

    // Through the glass to the cavity, or past it through the rim.
    bend(d, n, 1.0 / GLASS_N);
    float t = 0.0003, glass_way = 0.0;
    vec2 ends = in_cylinder(p, d);
    bool inside = ends.y > ends.x && on_cylinder(p.z + d.z * ends.x);
    t = inside ? max(ends.x, 0.0) : t;
    bool past = inside;
    for (int i = 0; i < 16; i++) {
        if (past) break;
        vec4 w = walls(p + d * t);
        inside = w.x > -0.00015;
        past = inside || (w.w < -0.0002 && i > 1);
        t += past ? 0.0 : max(-w.x, 0.0004);
    }
    vec3 q = p + d * t;
    glass_way = t;
    float wet = 0.0;                // way through the liquid [m]
    float line = 0.0;               // the meniscus
    vec3 keep = vec3(1.0);          // what is left of the light on its way
    vec3 added = vec3(0.0);
    float width = max(vessel_grid.w, 0.7 * pixel);
    bool trapped = false;
    if (inside) {
        float height = over(q);
        bool in_liquid = height < 0.0;
        line = 1.0 - smoothstep(0.0, width, abs(height));
        vec3 n_in = wall_normal(q);
        float medium = in_liquid ? liquid.w : 1.0;
        mirror = reflectance(abs(dot(d, n_in)), GLASS_N, medium);
        trapped = bend(d, n_in, GLASS_N / medium);
        if (!trapped) {
            keep *= 1.0 - mirror;
            added += mirror * shine * 0.6;
            // Across the cavity: at most two surfaces of the liquid on the way.
            for (int i = 0; i < 2; i++) {
                float t_wall = to_wall(q, d);
                float t_top = to_surface(q, d, t_wall);
                bool cross_it = t_top < t_wall;
                float way = cross_it ? t_top : t_wall;
                wet += in_liquid ? way : 0.0;
                q += d * way;
                if (!cross_it) break;
                vec3 n_top = surface_normal(q);
                n_top = in_liquid ? -n_top : n_top;
                float f = reflectance(abs(dot(d, n_top)), in_liquid ? liquid.w : 1.0, in_liquid ? 1.0 : liquid.w);
                vec3 bounced = reflect(d, n_top);
                bool all = bend(d, n_top, in_liquid ? liquid.w : 1.0 / liquid.w);
                if (!all) {
                    vec3 up_there = to_world_way(bounced);
                    added += keep * f * exp(-liquid.rgb * wet) * sky_gradient(vec3(up_there.xy, abs(up_there.z)));
                    keep *= 1.0 - f;
                    in_liquid = !in_liquid;
                }
            }
            float leave = over(q);
            line = max(line, 0.75 * (1.0 - smoothstep(0.0, width, abs(leave))));
            vec3 n_out = wall_normal(q);
            medium = in_liquid ? liquid.w : 1.0;
            mirror = reflectance(abs(dot(d, n_out)), medium, GLASS_N) + reflectance(abs(dot(d, n_out)), GLASS_N, 1.0);
            if (bend(d, -n_out, medium)) {
                // Caught inside: once more across.
                float t_wall = to_wall(q, d);
                wet += in_liquid ? t_wall : 0.0;
                q += d * t_wall;
                if (bend(d, -wall_normal(q), medium)) keep *= 0.6;
                mirror = 0.1;
            }
            keep *= 1.0 - clamp(mirror, 0.0, 1.0);
        }
    }
    if (!inside || trapped) {
        // Along in the glass of rim, foot or neck to where it leaves it.
        for (int i = 0; i < 14; i++) {
            float w = walls(q + d * 0.0006).w;
            if (w < 0.0) break;
            q += d * max(w, 0.0006);
            glass_way += max(w, 0.0006);
        }
        vec2 e = vec2(0.0015, 0.0);
        vec2 rz = vec2(length(q.xy), q.z);
        vec3 out_of = vec3(q.xy / max(rz.x, 1e-5), 0.0);
        float w0 = walls(q).w;
        vec3 n_out = normalize(out_of * (w0 - walls(q + out_of * e.x).w) + vec3(0.0, 0.0, w0 - walls(q + e.yyx).w) + out_of * 1e-6);
        if (bend(d, -n_out, GLASS_N)) keep *= vec3(0.55, 0.62, 0.60);
        keep *= 0.94;
    }
    keep *= exp(-liquid.rgb * wet) * exp(-vec3(5.0, 1.6, 2.6) * min(glass_way, 0.08));
    vec3 way = to_world_way(d);
    vec3 seen = background(world_point(q), way, pixel / away * 2.0);
    // A little of the light that the liquid holds comes out everywhere.
    vec3 tint = exp(-liquid.rgb * 0.13);
    vec3 body = tint * (ambient(n_world) + 0.5 * sun_color.rgb) * (0.16 * (1.0 - exp(-30.0 * wet)));
    result += seen * keep + added + body;
    vec3 edge = (ambient(n_world) * 0.8 + sun_color.rgb * 0.35) * mix(vec3(1.0), tint, 0.25);
    result = mix(result, edge, 0.62 * line);
    color = vec4(film(haze(result, away * away * dot(view.xy, view.xy) * horizon.w)), 1.0);
    through = vec4(0.0);
}
