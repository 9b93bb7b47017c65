/* Four threads compile at once, different modules among them, and each gives
 * what it gives alone. */
#include "axe.h"
#include "check.h"

#include <pthread.h>

#define THREADS 4

typedef struct {
  const char *target;
  axe_package *package;
  axe_status status;
} Job;

static void *compile(void *argument) {
  Job *job = argument;
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.target = job->target;
  options.no_assembler = true;
  job->status = axe_compile(ADD, sizeof ADD - 1, &options, &job->package, NULL);
  return NULL;
}

int main(void) {
  static const char *const targets[] = {"sm_80", "sm_90a"};
  Job jobs[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (Job){targets[i % 2], NULL, AXE_OK};
    CHECK(pthread_create(&threads[i], NULL, compile, &jobs[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < THREADS; i++) {
    Job alone = {targets[i % 2], NULL, AXE_OK};
    compile(&alone);
    CHECK(jobs[i].status == AXE_OK && alone.status == AXE_OK);
    size_t size = 0, other = 0;
    const uint8_t *bytes = axe_package_bytes(jobs[i].package, &size);
    const uint8_t *same = axe_package_bytes(alone.package, &other);
    CHECK(size > 0 && size == other && memcmp(bytes, same, size) == 0);
    CHECK(axe_package_decision_count(jobs[i].package) ==
          axe_package_decision_count(alone.package));
    axe_package_free(alone.package);
    axe_package_free(jobs[i].package);
  }
  if (failures == 0)
    printf("threads: equal results\n");
  return failures != 0;
}
