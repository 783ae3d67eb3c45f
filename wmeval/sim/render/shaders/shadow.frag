flat in uint instance;
#ifdef IDS
out uint code;
#endif

void main() {
#ifdef IDS
    code = instance;
#endif
}
