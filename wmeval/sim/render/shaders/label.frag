in vec3 normal;
flat in vec4 label;
#ifdef IDS
out uint code;
#else
out ivec4 code;
#endif

void main() {
    int id = int(label.x);
#ifdef IDS
    code = uint(id);
#else
    code = ivec4(ivec3(round(normalize(normal) * 32767.0)), (id << 16) >> 16);
#endif
}
