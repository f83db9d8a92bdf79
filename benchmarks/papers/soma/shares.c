/* Chains of Dirichlet shapes and records given a noisy sum of log-shares; the shapes move after every proposal.
   IMwG proposes to a random record, SOMA to all. It shares no code with dpjax. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { D = 3, BLOCK = 64 };

static uint64_t word(uint64_t *state) { /* SplitMix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state) { return ((word(state) >> 11) + 0.5) * 0x1p-53; }

static double normal(uint64_t *state) {
    return sqrt(-2 * log(uniform(state))) * cos(6.283185307179586 * uniform(state));
}

static double log_gamma_draw(uint64_t *state, double shape) { /* Marsaglia and Tsang (2000) */
    if (shape < 1) return log_gamma_draw(state, shape + 1) + log(uniform(state)) / shape;
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(state), root = 1 + c * x;
        if (root <= 0) continue;
        double v = root * root * root;
        if (log(uniform(state)) < 0.5 * x * x + d - d * v + d * log(v)) return log(d * v);
    }
}

static void draw_record(uint64_t *state, const double *shape, double *log_share) {
    double total = 0;
    for (int j = 0; j < D; j++) total += exp(log_share[j] = log_gamma_draw(state, shape[j]));
    for (int j = 0; j < D; j++) log_share[j] -= log(total);
}

static double log_posterior(const double *shape, const double *sums, int64_t n, const double *prior) {
    double value = 0, total = 0;
    for (int j = 0; j < D; j++) {
        if (shape[j] <= 0) return -1e300;
        total += shape[j];
        value += (prior[0] - 1) * log(shape[j]) - prior[1] * shape[j] - n * lgamma(shape[j]) + shape[j] * sums[j];
    }
    return value + n * lgamma(total);
}

static void move_shapes(uint64_t *state, double *shape, const double *sums, int64_t n, const double *prior,
                        double width) { /* Neal (2003): each shape in turn, stepping out */
    for (int j = 0; j < D; j++) {
        double here = shape[j], level = log_posterior(shape, sums, n, prior) + log(uniform(state));
        double left = here - width * uniform(state), right = left + width;
        for (shape[j] = left; log_posterior(shape, sums, n, prior) > level; shape[j] = left) left -= width;
        for (shape[j] = right; log_posterior(shape, sums, n, prior) > level; shape[j] = right) right += width;
        for (;;) {
            shape[j] = left + (right - left) * uniform(state);
            if (log_posterior(shape, sums, n, prior) > level) break;
            if (shape[j] < here) left = shape[j]; else right = shape[j];
        }
    }
}

static inline float fast_exp(float x) { /* to 3e-7; vectorised by compilers, unlike expf */
    float y = (x < -80 ? -80 : x > 80 ? 80 : x) * 1.44269504f;
    int32_t whole = (int32_t)(y + 128.5f) - 128;
    float f = (y - whole) * 0.693147181f;
    float power = 1 + f * (1 + f * (0.5f + f * (0.166666667f + f * (0.0416666667f + f * (8.33333e-3f + f * 1.38889e-3f)))));
    union { int32_t bits; float value; } two = {(whole + 127) << 23};
    return power * two.value;
}

/* exp(log-density with the proposal at each place - that of now), the sums of blocks, and the sum of all. */
static double weigh(int64_t n, const double *without, const float *clamped, double scale, double now, float *weights,
                    float *blocks) {
    float a = without[0], b = without[1], c = without[2], rate = 1 / scale, top = now;
    const float *first = clamped, *second = clamped + n, *third = clamped + 2 * n;
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        weights[i] = fast_exp(-rate * (fabsf(a + first[i]) + fabsf(b + second[i]) + fabsf(c + third[i])) - top);
    for (int64_t start = 0; start < n; start += BLOCK) {
        float sum = 0;
        for (int64_t i = start; i < n && i < start + BLOCK; i++) sum += weights[i];
        total += blocks[start / BLOCK] = sum;
    }
    return total;
}

/* One chain. shape [3] and log_shares [3][n] are its start and its end; draws [proposals / thin][3]. Returns how many
   proposals were accepted. every: the shapes move after so many proposals. */
int64_t run(uint64_t seed, int64_t n, const double *value, double scale, double log_lower, const double *prior,
            double width, int64_t soma, int64_t every, int64_t proposals, int64_t thin, double *shape,
            double *log_shares, double *draws) {
    uint64_t state = seed * 0xd1342543de82ef95u + 1;
    float *clamped = malloc(sizeof(float) * D * n), *weights = malloc(sizeof(float) * n);
    float *blocks = malloc(sizeof(float) * (n / BLOCK + 1));
    int64_t accepted = 0;
    double sums[D], residual[D], proposal[D];
    for (int64_t t = 0; t < proposals; t++) {
        if (t % n == 0) /* anew, so that rounding does not accumulate */
            for (int j = 0; j < D; j++) {
                sums[j] = 0, residual[j] = value[j];
                for (int64_t i = 0; i < n; i++) {
                    double one = log_shares[j * n + i];
                    sums[j] += one;
                    residual[j] -= clamped[j * n + i] = (float)fmax(one, log_lower);
                }
            }
        draw_record(&state, shape, proposal);
        double without[D], now = 0;
        for (int j = 0; j < D; j++) {
            without[j] = residual[j] - (float)fmax(proposal[j], log_lower);
            now -= fabs(residual[j]) / scale;
        }
        int64_t place;
        int moves;
        if (soma) {
            double total = weigh(n, without, clamped, scale, now, weights, blocks), target = uniform(&state) * total;
            int64_t block = 0, last = (n - 1) / BLOCK;
            while (block < last && target >= blocks[block]) target -= blocks[block++];
            for (place = block * BLOCK; place < n - 1 && (target -= weights[place]) >= 0; place++) {}
            moves = uniform(&state) * (total - weights[place] + 1) < total;
        } else {
            double then = 0;
            place = (int64_t)(uniform(&state) * n);
            for (int j = 0; j < D; j++) then -= fabs(without[j] + clamped[j * n + place]) / scale;
            moves = log(uniform(&state)) < then - now;
        }
        if (moves)
            for (int j = 0; j < D; j++) {
                residual[j] = without[j] + clamped[j * n + place];
                sums[j] += proposal[j] - log_shares[j * n + place];
                log_shares[j * n + place] = proposal[j];
                clamped[j * n + place] = (float)fmax(proposal[j], log_lower);
            }
        accepted += moves;
        if ((t + 1) % every == 0) move_shapes(&state, shape, sums, n, prior, width);
        if ((t + 1) % thin == 0)
            for (int j = 0; j < D; j++) draws[(t + 1) / thin * D - D + j] = shape[j];
    }
    free(clamped);
    free(weights);
    free(blocks);
    return accepted;
}
