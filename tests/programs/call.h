/* MPI calls that log themselves: CALL makes the call, counts it, and writes its line to the log.
 *
 *     CALL(MPI_Comm_dup, "comm:c >newcomm:c", WORLD, &copy);
 *
 * The layout names the call's parameters in order, as [MARK]NAME:KIND or [MARK]NAME:KIND(COUNT).
 * MARK > is an output, ~ is read and overwritten; both are passed by address. Inputs are written
 * down before the call, outputs after it. Arguments must be free of side effects.
 *   i int         j MPI_Aint, _Offset, _Count   l truth value   r rank     g tag     u int or MPI_UNDEFINED
 *   x index of a completed request              z string        b buffer   a other address
 *   c comm  p group  t datatype  o op  n info  e errhandler  f file  w window  m message  h session
 *   q request, v request made by a receive      s status
 *   k attribute: the word itself; K, W one of MPI's own: the int or MPI_Aint there, which is not there if not found
 *   ? a value of which the log says nothing     - an array of which nothing is to be seen: null
 * A buffer or address is an input whoever writes behind it, and of ? and - the argument must be a
 * pointer. COUNT makes it an array: of as many elements as the parameter of that name says, or, if
 * it is *, as `members` says; below 0 no array is to be seen.
 */
#ifndef CALL_H
#define CALL_H

#include "record.h"

#define MOST_WORDS 16
#define MOST_LIVE 64

/* Makes, counts and logs a call; its value is the error code. */
#define CALL(function, layout, ...)                                                              \
    (call_begins(#function, layout, __VA_ARGS__), code_of_call = function(__VA_ARGS__),          \
     call_ends(layout, __VA_ARGS__))
/* A call that is counted and not in the sequence. */
#define COUNTED(function, ...) (count_call(#function), function(__VA_ARGS__))

static int code_of_call;
static int with_errors;  /* whether the statuses of the call say how their own requests have fared */
static int members;  /* how long arrays of length * are */

/* ---- requests ------------------------------------------------------------------------------ */

struct live { MPI_Request handle; int number, receives; };
static struct live live[MOST_LIVE];
static struct live passed[MOST_LIVE];  /* what the call's requests were before it */
static int passed_count, last_request, alike[2];

static struct live *find_request(MPI_Request handle) {
    for (int i = 0; i < MOST_LIVE; i++)
        if (live[i].number && live[i].handle == handle) return &live[i];
    return NULL;
}

static int made_request(MPI_Request handle, int receives) {
    struct live *other = find_request(handle);
    int slot = 0;
    if (handle == MPI_REQUEST_NULL) return 0;
    while (slot < MOST_LIVE && live[slot].number) slot++;
    if (slot == MOST_LIVE) { fprintf(stderr, "call.h: MOST_LIVE is too small\n"); exit(9); }
    live[slot] = (struct live){handle, new_number(), receives};
    if (other) { alike[0] = other->number; alike[1] = live[slot].number; }
    return last_request = live[slot].number;
}

/* ---- one call's arguments ------------------------------------------------------------------ */

union value {
    int number; long long wide; const void *address;
    MPI_Comm comm; MPI_Group group; MPI_Datatype type; MPI_Op op; MPI_Info info; MPI_Errhandler errhandler;
    MPI_File file; MPI_Win win; MPI_Message message; MPI_Request request;
#if MPI_VERSION >= 4
    MPI_Session session;
#endif
};

struct word { char mark, kind; const char *name, *count; int name_length, count_length; union value value; };
static struct word word[MOST_WORDS];
static int words;

static int completed[MOST_LIVE];  /* which of the requests the call's statuses belong to */
static int completed_count;       /* below 0: to each in turn */

static void read_words(const char *layout, va_list values) {
    for (words = 0; *layout; words++) {
        struct word *w = &word[words];
        if (words == MOST_WORDS) { fprintf(stderr, "call.h: MOST_WORDS is too small\n"); exit(9); }
        while (*layout == ' ') layout++;
        w->mark = *layout == '>' || *layout == '~' ? *layout++ : 0;
        w->name = layout;
        w->name_length = strcspn(layout, ":");
        w->kind = layout[w->name_length + 1];
        layout += w->name_length + 2;
        w->count = NULL;
        if (*layout == '(') {
            w->count = layout + 1;
            w->count_length = strcspn(w->count, ")");
            layout += w->count_length + 2;
        }
        while (*layout == ' ') layout++;
        if (w->mark || w->count) { w->value.address = va_arg(values, const void *); continue; }
        switch (w->kind) {
        case 'i': case 'l': case 'r': case 'g': case 'u': w->value.number = va_arg(values, int); break;
        case 'j': w->value.wide = va_arg(values, long long); break;
        case 'c': w->value.comm = va_arg(values, MPI_Comm); break;
        case 'p': w->value.group = va_arg(values, MPI_Group); break;
        case 't': w->value.type = va_arg(values, MPI_Datatype); break;
        case 'o': w->value.op = va_arg(values, MPI_Op); break;
        case 'n': w->value.info = va_arg(values, MPI_Info); break;
        case 'e': w->value.errhandler = va_arg(values, MPI_Errhandler); break;
        case 'f': w->value.file = va_arg(values, MPI_File); break;
        case 'w': w->value.win = va_arg(values, MPI_Win); break;
        case 'm': w->value.message = va_arg(values, MPI_Message); break;
        case 'q': w->value.request = va_arg(values, MPI_Request); break;
#if MPI_VERSION >= 4
        case 'h': w->value.session = va_arg(values, MPI_Session); break;
#endif
        default: w->value.address = va_arg(values, const void *);
        }
    }
}

/* Where the word's value is. */
static const void *place(const struct word *w) {
    return w->mark || w->count || strchr("zs", w->kind) ? w->value.address : &w->value;
}

static const struct word *word_of(const char *name, int length) {
    for (int i = 0; i < words; i++)
        if (word[i].name_length == length && strncmp(word[i].name, name, length) == 0) return &word[i];
    return NULL;
}

static int count_of(const struct word *w) {
    if (*w->count == '*') return members;
    const struct word *count = word_of(w->count, w->count_length);
    int number = *(const int *)place(count);
    return number > 0 ? number : 0;  /* MPI_UNDEFINED is none */
}

static size_t bytes_of(char kind) {
    switch (kind) {
    case 'j': return sizeof(MPI_Aint);
    case 'c': return sizeof(MPI_Comm);
    case 't': return sizeof(MPI_Datatype);
    case 'q': return sizeof(MPI_Request);
    case 's': return sizeof(MPI_Status);
    default: return sizeof(int);
    }
}

static void put_text(const char *text) {
    fputc('"', log_file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fprintf(log_file, "\\%c", *text);
        else if ((unsigned char)*text < ' ') fprintf(log_file, "\\u%04x", *text);
        else fputc(*text, log_file);
    }
    fputc('"', log_file);
}

/* Element number `element` of the call's statuses; a send's says nothing. */
static void put_told(const MPI_Status *status, int element) {
    int of = completed_count < 0 ? element : element < completed_count ? completed[element] : -1;
    int sent = passed_count > 0 && of >= 0 && of < passed_count && passed[of].number && !passed[of].receives;
    if (with_errors) {
        int class;
        PMPI_Error_class(status->MPI_ERROR, &class);
        fputc('{', log_file);
        if (!sent && class != MPI_ERR_PENDING) {
            fputs("\"source\":", log_file);
            put_rank(status->MPI_SOURCE);
            fputs(",\"tag\":", log_file);
            put_tag(status->MPI_TAG);
            fputc(',', log_file);
        }
        fprintf(log_file, "\"error\":%d}", status->MPI_ERROR);
    } else if (sent) fputs("{\"any\":true}", log_file);
    else put_status(status);
}

static void put_value(char kind, const void *at, int element) {
    int number;
    switch (kind) {
    case 'i': fprintf(log_file, "%d", *(const int *)at); break;
    case 'j': fprintf(log_file, "%lld", *(const long long *)at); break;
    case 'l': fputs(*(const int *)at ? "true" : "false", log_file); break;
    case 'r': put_rank(*(const int *)at); break;
    case 'g': put_tag(*(const int *)at); break;
    case 'x': case 'u':
        number = *(const int *)at;
        if (kind == 'x') { completed[element] = number; completed_count = element + 1; }
        if (number == MPI_UNDEFINED) fputs("\"MPI_UNDEFINED\"", log_file);
        else fprintf(log_file, "%d", number);
        break;
    case 'b': put_buffer(*(void *const *)at); break;
    case 'a': case 'k': fprintf(log_file, "\"0x%lx\"", *(const unsigned long *)at); break;
    case 'K': fprintf(log_file, "\"0x%lx\"", (unsigned long)(long)**(int *const *)at); break;
    case 'W': fprintf(log_file, "\"0x%lx\"", (unsigned long)**(MPI_Aint *const *)at); break;
    case 'z': put_text(at); break;
    case 'c': put_comm(*(const MPI_Comm *)at); break;
    case 'p': put_group(*(const MPI_Group *)at); break;
    case 't': put_type(*(const MPI_Datatype *)at); break;
    case 'o': put_op(*(const MPI_Op *)at); break;
    case 'n': put_info(*(const MPI_Info *)at); break;
    case 'e': put_errhandler(*(const MPI_Errhandler *)at); break;
    case 'f': put_file(*(const MPI_File *)at); break;
    case 'w': put_win(*(const MPI_Win *)at); break;
    case 'm': put_message(*(const MPI_Message *)at); break;
    case 'q': case 'v':
        /* Of requests with one handle, the one that the call was given, or has just made. */
        number = passed_count ? passed[element].number : last_request;
        put_request(*(const MPI_Request *)at == MPI_REQUEST_NULL ? 0 : number);
        break;
    case 's': put_told(at, element); break;
#if MPI_VERSION >= 4
    case 'h': put_session(*(const MPI_Session *)at); break;
#endif
    default: fputs("{\"any\":true}", log_file);
    }
}

static void put_word(const struct word *w, int first, int known) {
    fprintf(log_file, "%s\"%.*s\":", first ? "" : ",", w->name_length, w->name);
    const char *at = place(w);
    int count = w->count && known ? count_of(w) : 0;
    if (!known && strchr("kKW", w->kind)) fputs("null", log_file);
    else if (!known || w->kind == '?') fputs("{\"any\":true}", log_file);
    else if (w->kind == '-' || count < 0) fputs("null", log_file);
    else if (w->kind == 's' && ((void *)at == MPI_STATUS_IGNORE || (void *)at == MPI_STATUSES_IGNORE))
        put_status(NULL);
    else if (!w->count) put_value(w->kind, at, 0);
    else {
        fputc('[', log_file);
        for (int i = 0; i < count; i++) {
            if (i) fputc(',', log_file);
            put_value(w->kind, at + i * bytes_of(w->kind), i);
        }
        fputc(']', log_file);
    }
}

/* ---- what a call makes and ends ------------------------------------------------------------ */

#if MPI_VERSION >= 4
#define FOR_SESSIONS(what) what('h', session, MPI_Session)
#else
#define FOR_SESSIONS(what)
#endif
#define FOR_OBJECTS(what) \
    what('c', comm, MPI_Comm) what('p', group, MPI_Group) what('t', type, MPI_Datatype) \
    what('o', op, MPI_Op) what('n', info, MPI_Info) what('e', errhandler, MPI_Errhandler) \
    what('f', file, MPI_File) what('w', win, MPI_Win) what('m', message, MPI_Message) FOR_SESSIONS(what)

static int numbers_before[MOST_WORDS];

static int is_passed(int number, int count) {
    for (int i = 0; i < count; i++)
        if (passed[i].number == number) return 1;
    return 0;
}

/* Remembers which objects the call may end. */
static void note_before(void) {
    passed_count = 0;
    for (int i = 0; i < words; i++) {
        const void *at = place(&word[i]);
        numbers_before[i] = 0;
        if (word[i].kind == 'q' && word[i].mark != '>') {
            passed_count = word[i].count ? count_of(&word[i]) : 1;
            for (int n = 0; n < passed_count; n++) {
                MPI_Request handle = ((const MPI_Request *)at)[n];
                passed[n] = (struct live){0};
                for (int l = 0; l < MOST_LIVE && !passed[n].number; l++)
                    if (live[l].number && live[l].handle == handle && !is_passed(live[l].number, n))
                        passed[n] = live[l];
            }
        }
        if (word[i].mark != '~' || word[i].count) continue;
#define NOTE(letter, object, Handle) \
        if (word[i].kind == letter) numbers_before[i] = number_of_##object(*(const Handle *)at);
        FOR_OBJECTS(NOTE)
    }
}

static void note_after(int outputs) {
    for (int i = 0; i < words; i++) {
        const struct word *w = &word[i];
        const void *at = place(w);
        for (int n = 0; w->kind == 'q' && w->mark == '~' && n < passed_count; n++) {
            if (((const MPI_Request *)at)[n] != MPI_REQUEST_NULL) continue;
            for (int l = 0; l < MOST_LIVE; l++)
                if (live[l].number == passed[n].number) live[l].number = 0;
        }
        if (!outputs) continue;
        if ((w->kind == 'q' || w->kind == 'v') && w->mark == '>')
            made_request(*(const MPI_Request *)at, w->kind == 'v');
        for (int n = 0; n < (w->count ? count_of(w) : 1); n++) {
#define MADE(letter, object, Handle) \
            if (w->kind == letter && w->mark == '>') made_##object(((const Handle *)at)[n]); \
            if (w->kind == letter && w->mark == '~' && !w->count && name_of_##object(*(const Handle *)at)) \
                freed_##object(numbers_before[i]);
            FOR_OBJECTS(MADE)
        }
    }
}

/* Whether the outputs are written: not those of a query that found nothing. */
static int found(void) {
    const struct word *flag = word_of("flag", 4), *outcount = word_of("outcount", 8);
    return !(flag && flag->mark && *(const int *)place(flag) == 0)
        && !(outcount && outcount->mark && *(const int *)place(outcount) == 0);
}

static void put_words(int outputs, int known) {
    int first = 1;
    for (int i = 0; i < words; i++) {
        int is_flag = word[i].name_length == 4 && strncmp(word[i].name, "flag", 4) == 0;
        int is_count = word[i].name_length == 8 && strncmp(word[i].name, "outcount", 8) == 0;
        if (word[i].mark == (outputs ? 0 : '>')) continue;
        put_word(&word[i], first, known || is_flag || is_count || word[i].mark == '~');
        first = 0;
    }
}

static void call_begins(const char *function, const char *layout, ...) {
    va_list values;
    va_start(values, layout);
    read_words(layout, values);
    va_end(values);
    count_call(function);
    note_before();
    completed_count = -1;
    if (!log_file) return;
    fprintf(log_file, "{\"fn\":\"%s\",\"args\":{", function);
    put_words(0, 1);
}

static int call_ends(const char *layout, ...) {
    va_list values;
    va_start(values, layout);
    read_words(layout, values);
    va_end(values);
    int class = MPI_SUCCESS, known = found();
    if (code_of_call != MPI_SUCCESS) PMPI_Error_class(code_of_call, &class);
    /* After the error of a message the outputs are written all the same. */
    int written = class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE || class == MPI_ERR_IN_STATUS;
    with_errors = class == MPI_ERR_IN_STATUS;
    alike[0] = 0;
    note_after(written && known);
    if (!log_file) return code_of_call;
    fputs("},\"out\":{", log_file);
    if (written) put_words(1, known);
    fputs("}", log_file);
    if (class != MPI_SUCCESS) fprintf(log_file, ",\"error\":%d", code_of_call);
    fputs("}\n", log_file);
    with_errors = 0;
    if (alike[0]) shared_requests(alike[0], alike[1]);
    return code_of_call;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static int rank, ranks;

#ifdef THREADS
static int provided;
#define BEGIN MPI_Init_thread, "argc:a argv:a required:i >provided:i", &argc, &argv, THREADS, &provided
#else
#define BEGIN MPI_Init, "argc:a argv:a", &argc, &argv
#endif
#define APPLY(macro, ...) macro(__VA_ARGS__)
#define MADE_ONLY(function, layout, ...) (code_of_call = function(__VA_ARGS__))
#define LOGGED_ONLY(function, layout, ...) \
    (call_begins(#function, layout, __VA_ARGS__), call_ends(layout, __VA_ARGS__))

/* MPI_Init, or MPI_Init_thread for the level THREADS; with an argument the log is ARGUMENT.<rank>. */
static void begin(int argc, char **argv) {
    APPLY(MADE_ONLY, BEGIN);
    if (argc > 1) {
        char path[4096];
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        snprintf(path, sizeof path, "%s.%d", argv[1], rank);
        log_file = fopen(path, "w");
        if (!log_file) { perror(path); exit(9); }
    }
    APPLY(LOGGED_ONLY, BEGIN);
    CALL(MPI_Comm_rank, "comm:c >rank:r", MPI_COMM_WORLD, &rank);
    CALL(MPI_Comm_size, "comm:c >size:i", MPI_COMM_WORLD, &ranks);
}

/* What the rank has to say, numbers and texts that must be the same with and without ampl. Rank 0
 * prints it for everyone at the end, since launchers mix the lines of several ranks. */
static char said[8192];
static int said_bytes;

static void say(const char *text, int count, const long *numbers) {
    char line[512];
    int used = snprintf(line, 256, "rank %d: %s", rank, text);
    for (int i = 0; i < count; i++) used += sprintf(line + used, " %ld", numbers[i]);
    line[used++] = '\n';
    if (said_bytes + used >= (int)sizeof said) { fprintf(stderr, "call.h: too much is said\n"); exit(9); }
    memcpy(said + said_bytes, line, used);
    said_bytes += used;
}

#define SAY(text) say(text, 0, NULL)
#define RESULT(what, ...) \
    say(what, sizeof((long[]){__VA_ARGS__}) / sizeof(long), (long[]){__VA_ARGS__})

static int end(void) {
    char *all = calloc(ranks, sizeof said);
    PMPI_Gather(said, sizeof said, MPI_CHAR, all, sizeof said, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++) fputs(all + i * sizeof said, stdout);
    free(all);
    count_call("MPI_Finalize");
    MPI_Finalize();
    if (!log_file) return 0;
    fputs("{\"fn\":\"MPI_Finalize\",\"args\":{},\"out\":{}}\n", log_file);
    print_counts(log_file, rank);
    return fclose(log_file) ? 9 : 0;
}

#endif
