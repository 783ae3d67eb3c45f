// The mean of a pixel's samples: exactly one of them where all are equal.
in vec2 ndc;
out vec4 color;
#ifdef SAMPLES
uniform sampler2DMS samples;
#else
uniform sampler2D samples;
#endif

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    vec4 sum = texelFetch(samples, at, 0);
#ifdef SAMPLES
    for (int i = 1; i < SAMPLES; i++) sum += texelFetch(samples, at, i);
    sum *= 1.0 / float(SAMPLES);
#endif
    color = sum;
}
