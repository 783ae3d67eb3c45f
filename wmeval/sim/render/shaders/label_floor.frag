in vec3 plane;
flat in vec4 label;
out ivec4 code;

void main() {
    int id = int(label.x);
    code = ivec4(0, 0, 32767, (id << 16) >> 16);
}
