/* The imputation sweeps of the private regression as plain loops, for comparison: two covariates, nine sums,
   Laplace noise. One chain after another, float32, no intrinsics. Both return the acceptance rate. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 3
#define SUMS 9

typedef struct {
    uint64_t words[4];
    float spare;
    int has_spare;
} Random;

typedef struct {
    float value[SUMS];    /* what was released */
    float scale;          /* of the Laplace noise */
    float mean[2];        /* of the covariates, of unit variance and uncorrelated */
    float coef[FIELDS];   /* intercept first */
    float deviation;      /* of the response given the covariates */
} Problem;

static uint64_t rotate(uint64_t word, int by) { return (word << by) | (word >> (64 - by)); }

/* xoshiro256++ of Blackman and Vigna. */
static uint64_t next_word(Random *random) {
    uint64_t *s = random->words, result = rotate(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

/* Seeded by splitmix64. */
static Random seeded(uint64_t seed) {
    Random random = {{0}, 0.0f, 0};
    for (int i = 0; i < 4; i++) {
        uint64_t mixed = (seed += 0x9e3779b97f4a7c15u);
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        random.words[i] = mixed ^ (mixed >> 31);
    }
    return random;
}

/* In (0, 1]. */
static float uniform(Random *random) { return (float)((next_word(random) >> 40) + 1) * 0x1p-24f; }

/* Marsaglia's polar method. */
static float normal(Random *random) {
    float u, v, square, factor;
    if (random->has_spare) {
        random->has_spare = 0;
        return random->spare;
    }
    do {
        u = 2 * uniform(random) - 1;
        v = 2 * uniform(random) - 1;
        square = u * u + v * v;
    } while (square >= 1 || square == 0);
    factor = sqrtf(-2 * logf(square) / square);
    random->spare = v * factor;
    random->has_spare = 1;
    return u * factor;
}

static float rescale(float value) { return fminf(fmaxf(value, -10.0f), 10.0f) / 10.0f; }

/* The clamped and rescaled moments, in the order of dpjax.statistics.gram. */
static void contribution(const float *record, float *sums) {
    float x1 = rescale(record[0]), x2 = rescale(record[1]), y = rescale(record[2]);
    const float all[SUMS] = {y, x1 * y, x2 * y, y * y, x1, x1 * x1, x2, x1 * x2, x2 * x2};
    memcpy(sums, all, sizeof all);
}

static void draw_record(Random *random, const Problem *problem, float *record) {
    record[0] = problem->mean[0] + normal(random);
    record[1] = problem->mean[1] + normal(random);
    record[2] = problem->coef[0] + problem->coef[1] * record[0] + problem->coef[2] * record[1]
                + problem->deviation * normal(random);
}

static float log_density(const Problem *problem, const float *residual) {
    float total = 0;
    for (int j = 0; j < SUMS; j++) total += fabsf(residual[j]);
    return -total / problem->scale;
}

static void start_residual(const Problem *problem, const float *records, int64_t n, float *residual) {
    float sums[SUMS];
    memcpy(residual, problem->value, sizeof problem->value);
    for (int64_t i = 0; i < n; i++) {
        contribution(records + FIELDS * i, sums);
        for (int j = 0; j < SUMS; j++) residual[j] -= sums[j];
    }
}

/* One systematic-scan sweep over records [n][FIELDS]; the number of offers accepted. */
static int64_t imwg_sweep(Random *random, const Problem *problem, float *records, int64_t n) {
    float residual[SUMS], proposed[SUMS], old[SUMS], new[SUMS], offer[FIELDS], current;
    int64_t accepted = 0;
    start_residual(problem, records, n, residual);
    current = log_density(problem, residual);
    for (int64_t i = 0; i < n; i++) {
        float *record = records + FIELDS * i, density;
        draw_record(random, problem, offer);
        contribution(record, old);
        contribution(offer, new);
        for (int j = 0; j < SUMS; j++) proposed[j] = residual[j] + old[j] - new[j];
        density = log_density(problem, proposed);
        if (logf(uniform(random)) < density - current) {
            memcpy(residual, proposed, sizeof residual);
            memcpy(record, offer, sizeof offer);
            current = density;
            accepted++;
        }
    }
    return accepted;
}

/* The log-weights [m] of an offer, given the residual without it and the contributions [SUMS][n] of the records. */
static void weigh(const Problem *problem, const float *without, const float *sums, int64_t n, int64_t m, float *weights) {
    memset(weights, 0, m * sizeof *weights);
    for (int j = 0; j < SUMS; j++)
        for (int64_t i = 0; i < m; i++) weights[i] -= fabsf(without[j] + sums[j * n + i]);
    for (int64_t i = 0; i < m; i++) weights[i] /= problem->scale;
}

/* One sweep of n offers, each tried at a window of m records, the windows in turn. */
static int64_t soma_sweep(Random *random, const Problem *problem, float *records, int64_t n, int64_t m, float *work) {
    float *sums = work, *weights = work + SUMS * n, residual[SUMS], without[SUMS], new[SUMS], offer[FIELDS], current;
    int64_t accepted = 0, first = 0;
    start_residual(problem, records, n, residual);
    current = log_density(problem, residual);
    for (int64_t i = 0; i < n; i++) {
        contribution(records + FIELDS * i, new);
        for (int j = 0; j < SUMS; j++) sums[j * n + i] = new[j];
    }
    for (int64_t k = 0; k < n; k++) {
        float *tried = sums + first, total = 0, sum = 0, target, chosen;
        int64_t place = 0;
        draw_record(random, problem, offer);
        contribution(offer, new);
        for (int j = 0; j < SUMS; j++) without[j] = residual[j] - new[j];
        weigh(problem, without, tried, n, m, weights);
        /* Relative to the current weight, which privacy keeps them near: no search for the largest is needed. */
        for (int64_t i = 0; i < m; i++) total += weights[i] = expf(weights[i] - current);
        target = uniform(random) * total;
        while (place < m - 1 && (sum += weights[place]) < target) place++;
        chosen = weights[place];
        if (uniform(random) * (total + 1 - chosen) < total) {
            for (int j = 0; j < SUMS; j++) {
                residual[j] = without[j] + tried[j * n + place];
                tried[j * n + place] = new[j];
            }
            memcpy(records + FIELDS * (first + place), offer, sizeof offer);
            current += logf(chosen);
            accepted++;
        }
        first = first + m == n ? 0 : first + 2 * m > n ? n - m : first + m;
    }
    return accepted;
}

/* attempts = 0 asks for the systematic scan. The records [chains][n][FIELDS] are drawn afresh first. */
double run(const Problem *problem, int64_t n, int64_t chains, int64_t sweeps, int64_t attempts) {
    float *records = malloc(FIELDS * n * sizeof *records), *work = malloc((SUMS + 1) * n * sizeof *work);
    int64_t accepted = 0;
    for (int64_t chain = 0; chain < chains; chain++) {
        Random random = seeded((uint64_t)chain);
        for (int64_t i = 0; i < n; i++) draw_record(&random, problem, records + FIELDS * i);
        for (int64_t sweep = 0; sweep < sweeps; sweep++)
            accepted += attempts ? soma_sweep(&random, problem, records, n, attempts, work)
                                 : imwg_sweep(&random, problem, records, n);
    }
    free(records);
    free(work);
    return (double)accepted / (double)(chains * sweeps * n);
}
