#include <fmt/format.h>
int main() { return 0; }
