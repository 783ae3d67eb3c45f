float openness(vec3 p, vec3 n, float self) { return 1.0; }
