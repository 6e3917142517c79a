/* A context-free grammar: in an alternative, % and a letter stand for a symbol, %% for itself. A text is a few pieces
 * of one kind, as long as there is room for them below a length that was drawn. What would go too deep takes a leaf. */
#include "data/pages/grammar.h"

#include <stdbool.h>
#include <string.h>

#include "base/philox.h"

enum { PIECE_BYTES = 1200, DEPTH_MAX = 6 };

typedef struct rules {
    char symbol;
    const char *const *alternative; /* ends with NULL */
    const char *leaf;               /* where it would go too deep; NULL: it cannot */
} rules;

#define ALTERNATIVES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

/* ---- code ---- */

ALTERNATIVES(code, "def %n(%a, %a=%i):\n    return %e\n", "for (%t %a = 0; %a < %i; %a++) %n[%a] = %e;\n",
             "if (%e %r %e) {\n    %n = %e;\n}\n", "static %t %n(%t %a, %t %a)\n{\n    return %e;\n}\n",
             "while %n %r %i:\n    %n += %e\n", "let %n = %n.map(%a => %e);\n",
             "SELECT %w, %w FROM %w_%w WHERE %w %r %i ORDER BY %w;\n", "#include <%w/%w_%w.h>\n",
             "fn %n(%a: &[%T]) -> %T { %e }\n", "print(f\"%w: {%n:.3f}\")\n", "%n = [%e for %a in range(%i)]\n",
             "class %N(%N):\n    def __init__(self, %a):\n        self.%n = %a\n", "assert %n(%i) == %f, \"%j %w\"\n",
             "try:\n    %n(%e)\nexcept %NError as %a:\n    raise\n", "const %n = new %N({%w: %i, %w: %e});\n",
             "/* %S */\n", "# %S\n", "// %S\n", "git commit -m \"%V the %j %w\"\n",
             "for %a in %w_*.txt; do %w --%w=%i \"%w\"; done\n",
             "template <typename T> T %n(const std::vector<T> &%a);\n", "return %e;\n",
             "mov eax, [rbx + %h]\nadd eax, %i\n", "{\"%w\": %i, \"%w\": [%f, %f], \"%w\": \"%j\"}\n",
             "%w:\n  %w: %i\n  %w: %j-%w\n", "<%w class=\"%j-%i\">%w %w</%w>\n", "%n = %n if %e %r %e else %f\n",
             "func (%a *%N) %N(%a int) error {\n\treturn nil\n}\n", "enum %N { %A_%A = %i, %A_%A = %h };\n",
             "switch (%n) {\ncase %i: return %e;\ndefault: break;\n}\n", "%n.%n(%e, %e);\n",
             "import %w.%w as %a\nfrom %w import %N\n", "#define %A_%A(%a) ((%a) %o %i)\n", "%t *%n = &%n[%e];\n",
             "match %n {\n    %N::%N => %e,\n    _ => %i,\n}\n", "UPDATE %w SET %w = %f WHERE %w_id = %i;\n",
             "curl -s https://%w.example/%w/%i | grep %w\n", "@%w\ndef %n(*%a, **%a): pass\n",
             "typedef struct { %t %n; %t %n; } %N;\n", "%n <- lm(%w ~ %w + %w, data = %w_%i)\n");
ALTERNATIVES(names, "%w_%w", "%w_%j", "%w%N", "get_%w", "%w_%i", "%j_%w", "is_%j", "%w", "n_%w", "%w_of_%w");
ALTERNATIVES(types_named, "%W%Z", "%W%W", "%W%W%Z", "%Z%i");
ALTERNATIVES(type_ends, "Map", "List", "Node", "Tree", "Reader", "Pool", "Index", "Cache", "View", "Table", "Queue",
             "State");
ALTERNATIVES(upper, "MAX", "MIN", "SIZE", "BUFFER", "INDEX", "STATE", "ERROR", "TOKEN", "BLOCK", "LIMIT", "DEPTH",
             "RATE", "PAGE", "SLOT", "RING", "CACHE", "MASK", "FLAG", "LEVEL", "COUNT");
ALTERNATIVES(arguments, "x", "y", "i", "j", "k", "n", "key", "value", "row", "col", "item", "left", "right", "node",
             "it", "p", "q", "data", "buf", "acc");
ALTERNATIVES(types, "int", "float", "double", "uint32_t", "int64_t", "size_t", "char", "bool", "uint8_t", "long");
ALTERNATIVES(rust, "f32", "u8", "i64", "usize", "String", "bool", "u32", "f64");
ALTERNATIVES(expressions, "%a %o %a", "%n(%a)", "%a[%i]", "%n[%a %o %i]", "(%e) %o %f", "%i", "%f", "%n.%n", "%a %o %i",
             "%n(%e, %a)", "-%a", "%a * %a %o %i", "len(%n)", "%h");
ALTERNATIVES(operators, "+", "-", "*", "/", "%%", "^", "&", "|", "<<", ">>");
ALTERNATIVES(relations, "<", ">", "<=", ">=", "==", "!=");

/* ---- prose ---- */

ALTERNATIVES(sentences, "The %j %w %v the %j %w %m. ", "%P %v a %j %w %m. ", "%W %v no %w, but the %w is %j. ",
             "After %i %q, the %w of %P was %j. ", "There are %i %j %q %m. ", "%P said that the %w %v every %w. ",
             "Why does the %j %w %y the %w? ", "In %Y the %w %v %i %q. ", "A %w is %j when its %w is not %j. ",
             "\"%W,\" said %P, \"the %w is %j.\" ", "Every %w %v a %w; no %j %w %v %i. ",
             "%P and %P found the %j %w %m. ", "If the %w is %j, the %w %v it %m. ", "Nobody %v the %w of the %j %w. ",
             "It took %i hours until the %w was %j again. ", "Between the %w and the %w lies a %j %w. ",
             "%W, %w and %w: the %j %w %v them all. ", "Let the %w be %j; then %P %v the %w. ",
             "On %D at %H, the %w %v %P. ", "The price of a %j %w rose by %f %% in %Y. ",
             "Do not %y the %w before the %w is %j! ", "%P, a %j %w, %v the %w %m. ", "As %j as a %w, the %w %v on. ",
             "Its %w (about %i %q) %v the %w. ");
ALTERNATIVES(adjectives, "quiet", "old", "broken", "narrow", "bright", "early", "cold", "green", "hidden", "late",
             "slow", "empty", "sharp", "plain", "wide", "northern", "loose", "heavy", "sparse", "dense", "frozen",
             "local", "random", "stable", "rough", "tall", "silent", "dark", "simple", "strange", "warm", "distant",
             "yellow", "modern", "patient", "curious", "round", "fragile", "second", "final");
ALTERNATIVES(nouns, "river", "table", "signal", "garden", "index", "harbour", "lamp", "matrix", "letter", "window",
             "engine", "bridge", "cloud", "market", "orbit", "paper", "branch", "mirror", "station", "forest", "voice",
             "kernel", "island", "value", "road", "needle", "winter", "planet", "buffer", "castle", "sample", "shadow",
             "vector", "kitchen", "queue", "glacier", "theory", "page", "anchor", "circle", "block", "valley", "script",
             "metal", "ladder", "packet", "root", "lens", "storm", "village", "token", "wheel", "basket", "filter",
             "machine", "ocean", "pointer", "clock", "record", "thread", "tower", "stone", "field", "grain", "tunnel",
             "cell", "ribbon", "copper", "path", "crystal", "ledger", "sail", "pocket", "seed", "bell", "canvas",
             "coast", "node", "barrel", "echo");
ALTERNATIVES(plurals, "days", "hours", "steps", "boxes", "pages", "birds", "samples", "miles", "letters", "stones",
             "lines", "towers", "tokens", "boats", "years", "blocks", "trees", "keys", "weeks", "lamps");
ALTERNATIVES(verbs, "crosses", "measures", "carries", "follows", "repairs", "holds", "forgets", "changes", "meets",
             "opens", "counts", "moves", "reads", "leaves", "draws", "turns", "finds", "breaks", "covers", "divides",
             "keeps", "loses", "answers", "paints", "shakes", "weighs", "sorts", "hides", "builds", "watches");
ALTERNATIVES(verbs_plain, "cross", "measure", "carry", "follow", "repair", "hold", "forget", "change", "meet", "open",
             "count", "move", "read", "leave", "draw", "turn", "find", "break", "cover", "split");
ALTERNATIVES(where, "at night", "in the north", "without a word", "near the harbour", "under the bridge", "for a while",
             "since the spring", "behind the station", "once more", "in silence", "by the sea", "at noon",
             "every Monday", "before the storm", "along the coast", "in the second year", "against all odds",
             "on paper", "from afar", "without delay");
ALTERNATIVES(people, "Anna", "Mr. Holt", "Ines", "Dr. Okafor", "the captain", "Yusuf", "Marta", "Professor Lind", "Tom",
             "Mei", "old Baker", "Ravi", "Clara", "the gardener", "Ms. Novak", "Jonas", "Elena", "the clerk", "Farah",
             "Pavel");
ALTERNATIVES(capital_nouns, "Water", "Light", "Iron", "Memory", "Snow", "Time", "Salt", "Music", "Wood", "Noise",
             "Glass", "Wind", "Paper", "Sand", "Grass", "Heat");

/* ---- formulas ---- */

ALTERNATIVES(formulas, "%g = %x\n", "%g(%a) = %x + %x\n", "%x = %x\n", "\\frac{%x}{%x} = %x\n",
             "d%g/d%a = -%f %g + %x\n", "lim_{%a -> %i} %x = %f\n", "%g_{%i} = %g_{%i} + %x\n",
             "P(%g | %g) = %x / %x\n", "||%g - %g|| <= %f\n", "%x < %x for all %a > %i\n", "sum_{%a=1}^{%i} %x = %x\n",
             "int_0^%i %x d%a = %f\n", "det(%g - %i I) = %x\n", "%i mod %i = %i\n", "%f %% of %i = %f\n",
             "E[%g] = %x, Var[%g] = %f\n", "%g: R^%i -> R^%i\n", "softmax(%g)_%a = exp(%g_%a) / sum exp(%g)\n",
             "%i x %i = %i\n", "2^%i - 1 = %h\n");
ALTERNATIVES(terms, "%g", "%i", "%f", "(%x + %x)", "%g^%i", "sqrt(%x)", "sin(%x)", "%g_%i", "%x / %g", "%i %g",
             "exp(-%x)", "log %g", "(%x)(%x)", "%g %g", "|%x|", "(%x - %f)^2");
ALTERNATIVES(letters, "x", "y", "z", "a", "b", "f", "g", "h", "u", "v", "w", "A", "B", "M", "Q", "alpha", "beta",
             "lambda", "theta", "phi");

/* ---- numbers ---- */

ALTERNATIVES(integers, "%0", "%1%0", "%1%0%0", "%1%0%0%0", "%1%0", "%1%0%0%0%0%0");
ALTERNATIVES(decimals, "0.%0%0", "%1.%0", "%1%0.%0%0", "0.%0%0%0%0", "%1e-%1", "%1.%0%0e%1");
ALTERNATIVES(hexadecimals, "0x%F%F", "0x%F%F%F%F", "0x%F%F%F%F%F%F%F%F", "0x%F");
ALTERNATIVES(digits, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9");
ALTERNATIVES(first_digits, "1", "2", "3", "4", "5", "6", "7", "8", "9");
ALTERNATIVES(hex_digits, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f");
ALTERNATIVES(years, "19%0%0", "20%0%0", "18%0%0", "20%0%0");
ALTERNATIVES(dates, "%1 May %Y", "1%0 June %Y", "%Y-0%1-1%0", "2%0 October", "%1 April", "%Y-1%1%k");
ALTERNATIVES(date_ends, "-0%1", "-1%0", "-2%0");
ALTERNATIVES(times, "%1:%50", "1%0:%55", "0%0:%50", "%1 p.m.");
ALTERNATIVES(tens, "0", "1", "2", "3", "4", "5");

/* ---- other scripts, tabs, paragraphs ---- */

ALTERNATIVES(others, "%X%X%X", "%G%G%G", "%K%K%K", "%B%B%B", "%E%E%E", "%M%M%M", "%L%L%L%L", "%S\n\n%S%S\n\n%S\n\n",
             "%S\n\n\t%S\n\n%X\n\n");
ALTERNATIVES(accented, "Die %i Bücher über Öl %v größte Mühe. ", "L'été, la forêt où %P était déjà très âgée. ",
             "El niño comió %i piñas en la montaña. ", "Þórður sá ævintýri í %Y. ", "Příliš žluťoučký kůň úpěl %i ód. ",
             "Zażółć gęślą jaźń, %P! ", "Çok güneşli bir gün, %i °C. ", "Ação e emoção não são iguais: %f. ",
             "Ångström mäter %f Å på två öar. ", "Cœur naïf, façade aiguë à %i €. ");
ALTERNATIVES(greek, "Η ταχύτητα του φωτός είναι %i. ", "Ο ποταμός μένει ίδιος %i χρόνια. ",
             "Το ευρετήριο α%i είναι μικρό. ", "Γιατί η θάλασσα είναι γαλάζια; ", "Καλημέρα, %P! ",
             "Ὁ λόγος %f πρὸς %f. ");
ALTERNATIVES(cyrillic, "Река течёт на север уже %i лет. ", "Индекс %i меньше, чем %i. ",
             "Съешь ещё этих мягких булок, %P. ", "Їжак знайшов %i грибів. ", "Ветер дует с моря. ",
             "Матрица имеет %i строк. ");
ALTERNATIVES(arabic, "النهر يجري منذ %i سنة. ", "الكتاب على الطاولة رقم %i. ", "مرحبا يا %P! ", "السرعة تساوي %f. ",
             "لا يوجد خطأ في السطر %i. ");
ALTERNATIVES(hebrew, "הנהר זורם כבר %i שנים. ", "הספר מונח על שולחן %i. ", "שלום %P! ", "המהירות היא %f. ",
             "אין שגיאה בשורה %i. ");
ALTERNATIVES(symbols, "∑ %g² = %i, ∀ %g ∈ ℝ\n", "∫ %x d%a ≈ %f ± %f\n", "α·β ≤ √%i\n", "∂%g/∂t = κ ∇²%g\n",
             "%g → ∞ ⇒ %x ≠ %i\n", "π ≈ 3.14159, ε = %f\n");
ALTERNATIVES(tabbed, "%w\t%i\t%f\n", "\t%n = %e;\n", "%j\t\t%w\t%h\n", "\t\treturn %i;\n", "%P\t%D\t%i\n");

static const rules grammar[] = {
    {'C', code, NULL},      {'n', names, "%w"},        {'N', types_named, NULL}, {'Z', type_ends, NULL},
    {'Z', type_ends, NULL}, {'A', upper, NULL},        {'a', arguments, NULL},   {'t', types, NULL},
    {'T', rust, NULL},      {'e', expressions, "%a"},  {'o', operators, NULL},   {'r', relations, NULL},
    {'S', sentences, NULL}, {'j', adjectives, NULL},   {'w', nouns, NULL},       {'W', capital_nouns, NULL},
    {'q', plurals, NULL},   {'v', verbs, NULL},        {'V', verbs_plain, NULL}, {'y', verbs_plain, NULL},
    {'m', where, NULL},     {'P', people, NULL},       {'Q', formulas, NULL},    {'x', terms, "%g"},
    {'g', letters, NULL},   {'i', integers, NULL},     {'f', decimals, NULL},    {'h', hexadecimals, NULL},
    {'0', digits, NULL},    {'1', first_digits, NULL}, {'5', tens, NULL},        {'F', hex_digits, NULL},
    {'Y', years, NULL},     {'D', dates, NULL},        {'k', date_ends, NULL},   {'H', times, NULL},
    {'O', others, NULL},    {'X', accented, NULL},     {'G', greek, NULL},       {'K', cyrillic, NULL},
    {'B', arabic, NULL},    {'E', hebrew, NULL},       {'M', symbols, NULL},     {'L', tabbed, NULL}};
enum { RULES = sizeof grammar / sizeof *grammar };

/* ---- drawing ---- */

typedef struct maker {
    pl_philox key;
    uint64_t id;
    uint32_t block, left, numbers[4]; /* of the numbers drawn, the last `left` are not used yet */
    char *to;
    size_t bytes, room;
    bool fits;
} maker;

static uint32_t draw(maker *m, uint32_t below)
{
    if (m->left == 0) pl_philox_block(&m->key, 0, m->id, m->block++, m->numbers), m->left = 4;
    return (uint32_t)((uint64_t)m->numbers[--m->left] * below >> 32);
}

static const rules *rules_of(char symbol)
{
    for (int i = 0; i < RULES; i++)
        if (grammar[i].symbol == symbol) return &grammar[i];
    return &grammar[0];
}

static uint32_t count_of(const rules *r)
{
    uint32_t n = 0;
    while (r->alternative[n]) n++;
    return n;
}

static void put(maker *m, char c)
{
    if (m->bytes < m->room)
        m->to[m->bytes++] = c;
    else
        m->fits = false;
}

static void expand(maker *m, char symbol, int depth)
{
    const rules *r = rules_of(symbol);
    const char *text = r->leaf && depth >= DEPTH_MAX ? r->leaf : r->alternative[draw(m, count_of(r))];
    for (; *text && m->fits; text++)
        if (text[0] != '%')
            put(m, *text);
        else if (*++text == '%')
            put(m, '%');
        else
            expand(m, *text, depth + 1);
}

static size_t characters_of(const char *text, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* No text ends with what only parts its pieces. */
static size_t trimmed(const char *text, size_t bytes)
{
    while (bytes && (text[bytes - 1] == ' ' || text[bytes - 1] == '\n')) bytes--;
    return bytes;
}

/* One more piece, if it fits; else the text is as it was. */
static bool add_piece(maker *m, char kind)
{
    const size_t before = m->bytes;
    m->fits = true;
    m->room = before + PIECE_BYTES < PL_GRAMMAR_TEXT_BYTES ? before + PIECE_BYTES : PL_GRAMMAR_TEXT_BYTES;
    expand(m, kind, 0);
    if (m->fits && characters_of(m->to, m->bytes) <= PL_GRAMMAR_CHARACTERS_MAX) return true;
    m->bytes = before;
    return false;
}

size_t pl_grammar_text(uint64_t seed, uint64_t id, char text[PL_GRAMMAR_TEXT_BYTES])
{
    static const char kinds[] = {'C', 'S', 'Q'};
    const uint32_t lengths = PL_GRAMMAR_CHARACTERS_MAX - PL_GRAMMAR_CHARACTERS_MIN + 1;
    maker m = {.key = pl_philox_init(seed, pl_stream_id("texts/grammar")), .id = id, .to = text};
    const char kind = draw(&m, 16) == 0 ? 'O' : kinds[draw(&m, sizeof kinds)];
    const size_t wanted = PL_GRAMMAR_CHARACTERS_MIN + draw(&m, lengths);
    for (size_t n = 0; n < wanted;) {
        const bool added = add_piece(&m, kind);
        n = characters_of(text, trimmed(text, m.bytes));
        if (!added && n >= PL_GRAMMAR_CHARACTERS_MIN) break;
    }
    return trimmed(text, m.bytes);
}
