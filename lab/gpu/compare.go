package gpu

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/stats"
)

// contender is an alternative implementation of a model.
type contender struct {
	name string
	question
}

// comparison describes a model to tune and compare.
type comparison struct {
	model string
	// flags are passed to tuning and compiling.
	flags []string
	// trials and time bound the search.
	trials     int
	time       time.Duration
	contenders []contender
}

const (
	// rounds is the number of turns of our packages and the peers. repeats is the number of our samples per round.
	rounds  = 3
	repeats = "20"
)

// compiling returns the command line that compiles the model.
func (c comparison) compiling(more ...string) []string {
	return slices.Concat([]string{"compile", c.model, "--target", "cuda"}, c.flags, more)
}

// compared tunes a model and times its packages in turns with peers.
func (b *suite) compared(ctx context.Context, c comparison, r *result) error {
	untuned, tuned := b.path("untuned.tar"), b.path("tuned.tar")
	// Peers use the card to autotune while this compilation only uses processors. Tuning then has both to itself.
	var wait sync.WaitGroup
	var ready []contender
	wait.Go(func() { ready = b.prepare(ctx, c.contenders, r) })
	_, err := b.call(ctx, c.compiling("--untuned", "-o", untuned)...)
	wait.Wait()
	if err != nil {
		return err
	}
	if !b.searched(ctx, c, tuned, r) {
		if err := b.search(ctx, c, r); err != nil {
			return err
		}
		if err := b.compileTuned(ctx, c, tuned, r); err != nil {
			return err
		}
	}
	if err := b.inTurns(ctx, []contest{{"untuned", untuned}, {"tuned", tuned}}, ready, r); err != nil {
		return err
	}
	return b.explain(ctx, tuned, r)
}

// contest is one of our packages, with its name in the results.
type contest struct{ name, file string }

// timed is the output of 'tilth run --print-time --json'.
type timed struct {
	Load   float64 `json:"load_s"`
	First  float64 `json:"first_run_s"`
	Device struct {
		Median float64 `json:"median"`
	} `json:"device_time_s"`
}

// inTurns times packages and peers, and records the medians over all rounds.
func (b *suite) inTurns(ctx context.Context, packages []contest, contenders []contender, r *result) error {
	samples := map[string][]float64{}
	keep := func(name string, seconds float64) { samples[name] = append(samples[name], seconds) }
	for range rounds {
		for _, p := range packages {
			var took timed
			if err := b.ask(ctx, &took, "run", p.file, "--print-time", "--repeat", repeats); err != nil {
				return err
			}
			keep(p.name+"_s", took.Device.Median)
			keep("load_s", took.Load)
			keep("first_s", took.First)
		}
		for _, c := range contenders {
			said, err := b.answer(ctx, c.question)
			if err != nil {
				r.lacks(c.name, err)
				continue
			}
			keep(c.name+"_s", said.Seconds)
			r.Notes[wayNote(c.name)] = said.Way
		}
	}
	for name, list := range samples {
		r.Values[name] = stats.Of(list).Median
	}
	r.ratio("of_untuned", "untuned_s", "tuned_s")
	r.ratio("of_peer", "peer_s", "tuned_s")
	r.ratio("untuned_of_peer", "peer_s", "untuned_s")
	r.ratio("of_triton", "triton_s", "tuned_s")
	return nil
}

// wayNote returns the key of a note on how a contender's work was submitted to the card.
func wayNote(contender string) string { return contender + " as" }

// ratio records the quotient of two times if both are known.
func (r *result) ratio(name, of, by string) {
	if r.Values[of] > 0 && r.Values[by] > 0 {
		r.Values[name] = r.Values[of] / r.Values[by]
	}
}

// lacks marks a comparison as impossible.
func (r *result) lacks(name string, why error) { r.Undone = "no " + name + ": " + why.Error() }

// prepare makes the contenders compile and returns those that succeeded.
func (b *suite) prepare(ctx context.Context, contenders []contender, r *result) (ready []contender) {
	begin := time.Now()
	for _, c := range contenders {
		q := c.question
		q.Ready = true
		if _, err := b.answer(ctx, q); err != nil {
			r.lacks(c.name, err)
		} else {
			ready = append(ready, c)
		}
	}
	r.Values["peers_compile_s"] = time.Since(begin).Seconds()
	return ready
}

// summary is the output of 'tilth tune --json'.
type summary struct {
	Trials       int      `json:"trials"`
	TrialSeconds *float64 `json:"trial_s"`
	Tasks        []struct {
		Errors   map[string]int    `json:"errors"`
		Messages map[string]string `json:"messages"`
	} `json:"tasks"`
}

// errorsPrefix precedes the error class in the name of an error count.
const errorsPrefix = "errors "

// failures records how many trials failed with which errors, with a message of each.
func (s *summary) failures(r *result) {
	for _, task := range s.Tasks {
		for class, n := range task.Errors {
			r.Values[errorsPrefix+class] += float64(n)
			r.Notes[class] = task.Messages[class]
		}
	}
}

// searched compiles with the records of an earlier attempt that only lacked a peer. It returns false if there is no
// such attempt or its records are gone.
func (b *suite) searched(ctx context.Context, c comparison, tuned string, r *result) bool {
	earlier := b.ledger.newest(r.Step, func(r *result) bool { return b.own(r) && r.Values["trials"] > 0 })
	if earlier == nil || b.compileTuned(ctx, c, tuned, r) != nil {
		return false
	}
	if r.Values["tuned_tasks"] < max(earlier.Values["tuned_tasks"], 1) {
		return false
	}
	for name, value := range earlier.Values {
		if name == "trials" || name == "trial_s" || strings.HasPrefix(name, errorsPrefix) {
			r.Values[name] = value
		}
	}
	return true
}

// compileTuned compiles the package with the best records.
func (b *suite) compileTuned(ctx context.Context, c comparison, tuned string, r *result) error {
	var compiled struct{ Tasks, Tuned int }
	if err := b.ask(ctx, &compiled, c.compiling("--records", b.records(), "-o", tuned)...); err != nil {
		return err
	}
	r.Values["tasks"], r.Values["tuned_tasks"] = float64(compiled.Tasks), float64(compiled.Tuned)
	return nil
}

// search tunes and saves the measurements.
func (b *suite) search(ctx context.Context, c comparison, r *result) error {
	s, err := b.tune(ctx, c.model, b.records(), b.isolation(), c.trials, c.time, c.flags...)
	if err != nil {
		return err
	}
	r.Values["trials"] = float64(s.Trials)
	if s.TrialSeconds != nil {
		r.Values["trial_s"] = *s.TrialSeconds
	}
	s.failures(r)
	return b.exportRecords(ctx)
}

// tune searches for a number of trials and at most a time.
func (b *suite) tune(ctx context.Context, model, records, sandbox string, trials int, time time.Duration, flags ...string) (s summary, err error) {
	args := []string{"tune", model, "--target", "cuda", "--records", records, "--sandbox", sandbox, "--quiet", "--trials", strconv.Itoa(trials), "--time", time.String()}
	err = b.ask(ctx, &s, append(args, flags...)...)
	return s, err
}
