// Run an export in TensorFlow's C API, without Python.
//
//     runtimes EXPORT QUESTIONS ANSWERS
//
// EXPORT is the folder of a version. Both files consist of int64 numbers in the
// byte order of the machine, and bytes. A text is its size and its bytes.
//
//     QUESTIONS: requests; for each: inputs, for each: name of the tensor, value;
//                                    outputs, for each: name of the tensor
//     ANSWERS:   for each request and output: value
//     value:     data type (TF_DataType), rank, sizes, then the elements
//
// The elements of a string tensor are texts; those of other tensors are one text
// with all bytes. The program prints the version of TensorFlow and "TITLE" in lower
// case, which depends on the locale in TensorFlow's operation StringLower.

#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

enum { MAX_RANK = 8, MAX_TENSORS = 32 };

static void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  exit(1);
}

static void check(const TF_Status *status, const char *what) {
  if (TF_GetCode(status) != TF_OK) fail("%s: %s", what, TF_Message(status));
}

static void *allocate(size_t size) {
  void *bytes = malloc(size ? size : 1);
  if (!bytes) fail("No memory for %zu bytes.", size);
  return bytes;
}

// Files.

static FILE *open_file(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (!file) fail("Cannot open %s.", path);
  return file;
}

static void read_bytes(FILE *file, void *bytes, size_t size) {
  if (fread(bytes, 1, size, file) != size) fail("The file of questions is cut.");
}

static int64_t read_number(FILE *file) {
  int64_t number;
  read_bytes(file, &number, sizeof number);
  return number;
}

// Return a text with a 0 after it; free it.
static char *read_text(FILE *file, size_t *size) {
  *size = (size_t)read_number(file);
  char *text = allocate(*size + 1);
  read_bytes(file, text, *size);
  text[*size] = 0;
  return text;
}

static void write_bytes(FILE *file, const void *bytes, size_t size) {
  if (fwrite(bytes, 1, size, file) != size) fail("Cannot write the answers.");
}

static void write_number(FILE *file, int64_t number) {
  write_bytes(file, &number, sizeof number);
}

static void write_text(FILE *file, const void *bytes, size_t size) {
  write_number(file, (int64_t)size);
  write_bytes(file, bytes, size);
}

// Tensors.

static int64_t count_of(const int64_t *sizes, int rank) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= sizes[i];
  return count;
}

static TF_Tensor *read_tensor(FILE *file) {
  int64_t sizes[MAX_RANK];
  TF_DataType type = (TF_DataType)read_number(file);
  int rank = (int)read_number(file);
  if (rank < 0 || rank > MAX_RANK) fail("A tensor has the rank %d.", rank);
  for (int i = 0; i < rank; i++) sizes[i] = read_number(file);
  int64_t count = count_of(sizes, rank);
  size_t element = type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(type);
  TF_Tensor *tensor =
      TF_AllocateTensor(type, sizes, rank, (size_t)count * element);
  if (!tensor) fail("No memory for a tensor.");
  size_t size;
  if (type != TF_STRING) {
    char *bytes = read_text(file, &size);
    if (size != TF_TensorByteSize(tensor)) fail("A tensor has a wrong size.");
    memcpy(TF_TensorData(tensor), bytes, size);
    free(bytes);
    return tensor;
  }
  TF_TString *strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < count; i++) {
    char *text = read_text(file, &size);
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], text, size);
    free(text);
  }
  return tensor;
}

static void write_tensor(FILE *file, const TF_Tensor *tensor) {
  int64_t sizes[MAX_RANK];
  int rank = TF_NumDims(tensor);
  if (rank > MAX_RANK) fail("An output has the rank %d.", rank);
  write_number(file, TF_TensorType(tensor));
  write_number(file, rank);
  for (int i = 0; i < rank; i++) {
    sizes[i] = TF_Dim(tensor, i);
    write_number(file, sizes[i]);
  }
  if (TF_TensorType(tensor) != TF_STRING) {
    write_text(file, TF_TensorData(tensor), TF_TensorByteSize(tensor));
    return;
  }
  const TF_TString *strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < count_of(sizes, rank); i++) {
    write_text(file, TF_StringGetDataPointer(&strings[i]),
               TF_StringGetSize(&strings[i]));
  }
}

// Graphs.

// Read "operation:index" and return this output.
static TF_Output read_output(FILE *file, TF_Graph *graph) {
  size_t size;
  char *name = read_text(file, &size);
  char *colon = strrchr(name, ':');
  if (!colon) fail("%s is not the name of a tensor.", name);
  *colon = 0;
  TF_Output output = {TF_GraphOperationByName(graph, name), atoi(colon + 1)};
  if (!output.oper) fail("The export has no operation %s.", name);
  free(name);
  return output;
}

static void answer(TF_Session *session, TF_Graph *graph, FILE *questions,
                   FILE *answers) {
  TF_Output inputs[MAX_TENSORS], outputs[MAX_TENSORS];
  TF_Tensor *given[MAX_TENSORS], *results[MAX_TENSORS];
  int num_inputs = (int)read_number(questions);
  if (num_inputs > MAX_TENSORS) fail("%d inputs are too many.", num_inputs);
  for (int i = 0; i < num_inputs; i++) {
    inputs[i] = read_output(questions, graph);
    given[i] = read_tensor(questions);
  }
  int num_outputs = (int)read_number(questions);
  if (num_outputs > MAX_TENSORS) fail("%d outputs are too many.", num_outputs);
  for (int i = 0; i < num_outputs; i++) outputs[i] = read_output(questions, graph);
  TF_Status *status = TF_NewStatus();
  TF_SessionRun(session, NULL, inputs, given, num_inputs, outputs, results,
                num_outputs, NULL, 0, NULL, status);
  check(status, "Cannot run the export");
  for (int i = 0; i < num_outputs; i++) {
    write_tensor(answers, results[i]);
    TF_DeleteTensor(results[i]);
  }
  for (int i = 0; i < num_inputs; i++) TF_DeleteTensor(given[i]);
  TF_DeleteStatus(status);
}

// Run all requests like TensorFlow Serving: load once, then run.
static void answer_all(const char *folder, FILE *questions, FILE *answers) {
  const char *tags[] = {"serve"};
  TF_Status *status = TF_NewStatus();
  TF_Graph *graph = TF_NewGraph();
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Session *session = TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1,
                                                     graph, NULL, status);
  check(status, "Cannot load the export");
  for (int64_t left = read_number(questions); left > 0; left--) {
    answer(session, graph, questions, answers);
  }
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  check(status, "Cannot close the session");
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
}

static TF_Operation *add_title(TF_Graph *graph, TF_Status *status) {
  TF_Tensor *title = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  TF_StringInit(TF_TensorData(title));
  TF_StringCopy(TF_TensorData(title), "TITLE", 5);
  TF_OperationDescription *constant = TF_NewOperation(graph, "Const", "title");
  TF_SetAttrTensor(constant, "value", title, status);
  TF_SetAttrType(constant, "dtype", TF_STRING);
  return TF_FinishOperation(constant, status);
}

// Print "TITLE" in lower case, computed by TensorFlow. In Turkish, it has no dot.
static void print_lower_title(void) {
  TF_Status *status = TF_NewStatus();
  TF_Graph *graph = TF_NewGraph();
  TF_Output title = {add_title(graph, status), 0};
  TF_OperationDescription *lower = TF_NewOperation(graph, "StringLower", "lower");
  TF_AddInput(lower, title);
  TF_SetAttrString(lower, "encoding", "utf-8", 5);
  TF_Output output = {TF_FinishOperation(lower, status), 0};
  check(status, "Cannot build a graph");
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Session *session = TF_NewSession(graph, options, status);
  TF_Tensor *result = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &output, &result, 1, NULL, 0, NULL,
                status);
  check(status, "Cannot run StringLower");
  const TF_TString *text = TF_TensorData(result);
  printf("%.*s\n", (int)TF_StringGetSize(text), TF_StringGetDataPointer(text));
  TF_DeleteTensor(result);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
}

static void refuse_python(void) {
  char line[8192];
  FILE *maps = open_file("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) {
    if (strstr(line, "libpython") || strstr(line, "_pywrap")) {
      fail("This process has loaded Python: %s", line);
    }
  }
  fclose(maps);
}

int main(int argc, char **argv) {
  if (argc != 4) fail("Usage: %s EXPORT QUESTIONS ANSWERS", argv[0]);
  // A server in this locale does the same. The locale need not be installed:
  // TensorFlow's ICU reads LC_ALL itself.
  setlocale(LC_ALL, "");
  FILE *questions = open_file(argv[2], "rb"), *answers = open_file(argv[3], "wb");
  answer_all(argv[1], questions, answers);
  fclose(questions);
  if (fclose(answers)) fail("Cannot write %s.", argv[3]);
  refuse_python();
  printf("%s ", TF_Version());
  print_lower_title();
  return 0;
}
