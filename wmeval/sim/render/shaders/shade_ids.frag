// Which body keeps the sun off each pixel, from depth, normals and the shadow map with ids.
in vec2 ndc;
out uint code;
uniform sampler2D depth_map;
uniform isampler2D label_map;
uniform sampler2D shadow_depth;
uniform usampler2D shadow_instance;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    code = 0u;
    float d = texelFetch(depth_map, at, 0).r;
    if (d <= 0.0) return;
    vec3 n = vec3(texelFetch(label_map, at, 0).xyz) / 32767.0;
    float nl = dot(n, sun.xyz);
    if (nl <= 0.0) return;
    vec3 ray = ray_z.xyz + ndc.x * ray_x.xyz + ndc.y * ray_y.xyz;
    vec4 q = vec4(eye.xyz + ray * (eye.w / d), 1.0);
    vec3 s = vec3(dot(shadow_x, q), dot(shadow_y, q), dot(shadow_z, q) - shadow_info.z);
    if (any(lessThan(s.xy, vec2(0.0))) || any(greaterThanEqual(s.xy, vec2(1.0)))) return;
    ivec2 texel = ivec2(s.xy * vec2(textureSize(shadow_depth, 0)));
    if (texelFetch(shadow_depth, texel, 0).r < s.z) code = texelFetch(shadow_instance, texel, 0).r;
}
