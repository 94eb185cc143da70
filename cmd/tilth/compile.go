package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
	"github.com/tilth-dev/tilth/tuner/recordsource"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

const compileLong = `Compile a model into a package, with the best known schedule of each task.

Schedules come from the records file, from a tracker, or from an export that --records
names. A task without records for the target gets the schedule that a cost model
predicts to be the fastest, or the default schedule. A package is compiled for one
number of threads. With --threads 1, --format c makes an archive of C source.`

const compileDetails = `--records also takes an export on a web server; only what the model needs is
fetched. The cost model is trained on the records of other tasks; without any records, tasks
get the default schedule. Schedules whose algorithm --numerics forbids are not used.

A record may carry a hand-written kernel with its C source. It is used only if --kernels
names its folder or --own-kernels allows all such kernels.

With --lock, the schedules in the lock file are used, and missing ones are chosen as
above and added to the file. The same lock file, model and target give the same package,
bit for bit, regardless of later records.

With --confirm, a record that this records file's own jobs did not make (imported,
from a tracker or from an export) is measured once on this machine, interleaved with
the default schedule. It is used only if its outputs are correct and it is not clearly
slower.

With --weights int8 or int4, float weights are stored as integers, in a quarter or a
seventh of the bytes. This speeds up models that are limited by memory bandwidth, such as
language models that generate one token at a time. The command prints how many weights it
quantized; --check measures the loss of accuracy. Weights of convolutions larger
than 1x1 are stored in 8 bits with int4, too.

With --check, the package runs once on the given inputs before it is written. Its
outputs are compared with those of the same model under strict numerics on this
processor. The error is printed and stored in the package; --max-error bounds it.

--prefix gives packages distinct C names, so that one program can link several.

For a microcontroller (cortex-m4, cortex-m7, cortex-m55, riscv32), and for any processor
with --format c and --threads 1, the package is an archive of C source to compile
into a program or firmware. It needs no operating system; its README.txt explains how.

Compiled tasks are cached in the user's cache folder, up to 1 GiB, so that unchanged
tasks are not compiled again.`

type compileCommand struct {
	*app
	model                    modelFlags
	target, compiler, output string
	threads                  int
	prefix                   string
	source                   sourceFlags
	records                  string
	tracker                  trackerFlags
	allowHTTP                bool
	untuned, noCache         bool
	requireTuned             bool
	// why holds the reasons for untuned tasks by workload digest.
	why       map[string]string
	low       objectiveFlag
	numerics  numericsFlag
	storage   storageFlag
	accuracy  accuracyFlags
	lock      lockFlags
	own       recordKernelFlags
	confirm   confirmFlag
	verify    verifyFlag
	costModel costModelFlag
	log       logFlag
}

// compileResult describes the result of a compilation in JSON.
type compileResult struct {
	Package     string `json:"package"`
	SizeBytes   int64  `json:"size_bytes"`
	Target      string `json:"target"`
	Tasks       int    `json:"tasks"`
	Tuned       int    `json:"tuned"`
	Transferred int    `json:"transferred"`
	// Untuned lists the tasks that are not tuned, by reason, except with --untuned.
	Untuned untunedList `json:"untuned,omitempty"`
	// Confirmed and Refused count the foreign records that --confirm accepted and rejected.
	Confirmed int `json:"confirmed"`
	Refused   int `json:"refused"`

	ArenaBytes   int64 `json:"arena_bytes"`
	WeightsBytes int64 `json:"weights_bytes"`
	// C describes the memory use of an archive of C source.
	C       *aot.CSource `json:"c,omitempty"`
	Seconds float64      `json:"took_s"`
	// Weights counts the weights stored as integers.
	Weights *aot.Weights `json:"weights,omitempty"`
	// Accuracy is the result of --check.
	Accuracy *aot.Accuracy `json:"accuracy,omitempty"`
}

// others describes confirmed records and guesses, if any.
func (r compileResult) others() (text string) {
	if r.Confirmed+r.Refused > 0 {
		text = fmt.Sprintf(" (%d of %d records from elsewhere confirmed)", r.Confirmed, r.Confirmed+r.Refused)
	}
	if r.Transferred > 0 {
		text += fmt.Sprintf(", %d learnt from others", r.Transferred)
	}
	return text
}

func newCompile(a *app) *cobra.Command {
	k := &compileCommand{app: a}
	c := &cobra.Command{
		Use: "compile MODEL.onnx", Short: "Compile a model with its best schedules to a package", Long: compileLong,
		Example: `  tilth compile resnet18.onnx -o resnet18.tar
  tilth compile resnet18.onnx --threads 1 --tracker 127.0.0.1:9190
  tilth compile keywords.onnx --target cortex-m7 --max-ram 256KiB`,
		Args: cobra.ExactArgs(1), Annotations: map[string]string{helpDetails: compileDetails},
	}
	k.model.add(c)
	targetFlag(c, &k.target, "target to compile for")
	c.Flags().IntVar(&k.threads, "threads", 0, "threads of the package (default the number of cores)")
	atLeast(c, 0, "threads")
	k.low.add(c)
	recordsFlag(c, &k.records)
	k.tracker.add(c, "")
	readRecordsFlags(c, &k.allowHTTP)
	compilerFlag(c, &k.compiler)
	c.Flags().StringVar(&k.prefix, "prefix", "", "`name` of the package's C function, NAME_api, for programs that link several packages")
	c.Flags().StringVarP(&k.output, "output", "o", "", "`package` to write; - is standard output (default MODEL.tar)")
	c.Flags().BoolVar(&k.model.uncheckedIndices, "unchecked-indices", false, "do not check that inputs which index a dimension are in range, but clamp them")
	k.source.add(c)
	k.numerics.add(c)
	k.storage.add(c)
	k.storage.addWeights(c)
	k.accuracy.add(c)
	k.lock.add(c)
	k.own.add(c)
	k.confirm.add(c)
	k.verify.add(c, "an export of --records")
	k.costModel.add(c)
	c.Flags().BoolVar(&k.untuned, "untuned", false, "use default schedules only, no records")
	c.Flags().BoolVar(&k.requireTuned, "require-tuned", false, "fail if a task has no record for this target, instead of using a default or predicted schedule")
	k.tracker.excludes(c, "records", "untuned")
	c.MarkFlagsMutuallyExclusive("require-tuned", "untuned")
	c.MarkFlagsMutuallyExclusive("records", "untuned")
	c.MarkFlagsMutuallyExclusive("cost-model", "untuned")
	c.MarkFlagsMutuallyExclusive("confirm", "untuned")
	c.Flags().BoolVar(&k.noCache, "no-cache", false, "ignore cached tasks")
	k.jsonFlag(c)
	k.log.add(c, slog.LevelWarn)
	return a.leaf(c, func(ctx context.Context, args []string) error { return k.run(ctx, args[0]) })
}

// check returns an error for flags that contradict each other or have impossible values.
func (k *compileCommand) check(path string) error {
	if err := aot.CheckPrefix(k.prefix); err != nil {
		return usagef("--prefix: %w", err)
	}
	return cmp.Or(k.storage.check(k.numerics.level), k.accuracy.check(path), k.lock.check())
}

func (k *compileCommand) run(ctx context.Context, path string) error {
	began := time.Now()
	if err := k.check(path); err != nil {
		return err
	}
	output := cmp.Or(k.output, modelName(path)+".tar")
	if err := onlyOutput(output, map[string]bool{"--json": k.asJSON}); err != nil {
		return err
	}
	if k.output == "" {
		if err := filesystem.CheckWritable(output); err != nil {
			return usagef("%w with -o", err)
		}
	}
	if err := k.own.open(ctx, k.compiler, k.stderr); err != nil {
		return err
	}
	machine, tc, err := k.low.localTarget(ctx, k.target, k.threads, k.compiler)
	if err != nil {
		return err
	}
	if err := k.confirm.check(machine); err != nil {
		return err
	}
	o := aot.Options{Prefix: k.prefix, Own: k.own.allows}
	if err := k.source.apply(&o, machine, modelName(path)); err != nil {
		return err
	}
	storage, err := k.storage.on(machine, k.numerics.level)
	if err != nil {
		return err
	}
	p, err := k.model.load(path, storage)
	if err != nil {
		return err
	}
	weights := k.storage.kept(k.model.quantised)
	measure, err := k.measure(ctx, machine, func() (*program.Program, error) { return k.model.load(path, array.Storage{}) })
	if err != nil {
		return err
	}
	choose := func(ctx context.Context, p *program.Program, t *target.Target) ([]aot.Choice, error) {
		return k.choose(ctx, p, t, tc)
	}
	choices, lock, err := k.lock.choices(ctx, p, machine, k.numerics.level, choose)
	if err != nil {
		return err
	}
	missing, err := k.missing(path, p, machine, choices)
	if err != nil {
		return err
	}
	o.Check, o.Weights, o.Provenance = measure, weights, k.provenance(machine)
	var manifest *aot.Manifest
	size, err := k.outputFile(output, func(file string) (err error) {
		manifest, err = k.compile(ctx, p, machine, tc, choices, file, o)
		return err
	})
	if err != nil {
		return err
	}
	if lock != nil {
		if err := lock.Write(k.lock.path); err != nil {
			return err
		}
	}
	result := compileResult{
		Package: fileName(output), SizeBytes: size, Target: machine.Fingerprint(), Tasks: len(p.Tasks), Tuned: bestschedule.Count(choices, bestschedule.FromRecord), Transferred: bestschedule.Count(choices, bestschedule.FromTransfer),
		Untuned: missing, Confirmed: k.confirm.confirmed, Refused: k.confirm.refused,
		ArenaBytes: manifest.ArenaBytes, WeightsBytes: manifest.WeightsBytes, C: manifest.C, Seconds: time.Since(began).Seconds(), Accuracy: manifest.Accuracy, Weights: manifest.Weights,
	}
	return k.print(k.statusWriter(output), result)
}

// missing lists the tasks without a record. It returns an error if --require-tuned forbids them.
func (k *compileCommand) missing(path string, p *program.Program, t *target.Target, choices []aot.Choice) (list untunedList, err error) {
	if !k.untuned {
		list = untuned(p.Tasks, choices, k.why)
	}
	if k.requireTuned && len(list) > 0 {
		err = fmt.Errorf("compile %s for %s: %d of %d tasks are not tuned: %s: tune them with 'tilth tune', or leave out --require-tuned",
			path, t.Fingerprint(), len(p.Tasks)-bestschedule.Count(choices, bestschedule.FromRecord), len(p.Tasks), list)
	}
	return list, err
}

func (k *compileCommand) compile(ctx context.Context, p *program.Program, t *target.Target, tc *toolchain.Toolchain, choices []aot.Choice, output string, o aot.Options) (*aot.Manifest, error) {
	objects, err := k.objects()
	if err != nil {
		return nil, err
	}
	o.Target, o.Toolchain, o.Choices, o.Parallel, o.Output, o.Objects = t, tc, choices, runtime.NumCPU(), output, objects
	terminal, live := terminalOf(k.stderr)
	o.Progress = compileProgress(terminal, live, time.Now)
	o.Apart = true // equal schedules give equal packages, whatever the cache and the number of processors
	return aot.Compile(ctx, p, o)
}

// progressEvery is the interval of lines about a compilation where they cannot be rewritten.
const progressEvery = 10 * time.Second

// compileProgress returns a function that writes the number of compiled kernels: in one line that is rewritten on a
// terminal and erased at the end, or else at intervals.
func compileProgress(w io.Writer, live bool, now func() time.Time) func(compiled, all int) {
	last := now()
	return func(compiled, all int) {
		switch {
		case live && compiled == all:
			fmt.Fprint(w, "\r\x1b[K")
		case live:
			fmt.Fprintf(w, "\rcompiling kernels %d/%d", compiled, all)
		case compiled < all && now().Sub(last) >= progressEvery:
			last = now()
			fmt.Fprintf(w, "compiling kernels %d/%d\n", compiled, all)
		}
	}
}

// objects returns the user's cache of compiled kernels, or nil if disabled.
func (k *compileCommand) objects() (*toolchain.Objects, error) {
	if k.noCache {
		return nil, nil
	}
	dir, err := cacheDir()
	if err != nil {
		return nil, err
	}
	objects, err := toolchain.OpenObjects(filepath.Join(dir, "objects"), 0)
	if err != nil {
		return nil, fmt.Errorf("%w: set XDG_CACHE_HOME, or use --no-cache", err)
	}
	return objects, nil
}

// choose looks up the schedules. Without a records file, it uses defaults, unless the user named the file.
func (k *compileCommand) choose(ctx context.Context, p *program.Program, t *target.Target, tc *toolchain.Toolchain) (choices []aot.Choice, err error) {
	log := k.log.logger(k.stderr)
	from := func(sources bestschedule.Sources, records storesync.Catalogue) (choices []aot.Choice, err error) {
		sources.MaxBytes = int64(k.source.size)
		refused := map[string]string{}
		sources.Refused = func(task program.Task, reason string) { refused[task.Workload.Digest()] = reason }
		if choices, err = bestschedule.Choose(ctx, p, t, k.numerics.level, sources, log); err == nil {
			k.why, err = explainUntuned(ctx, p.Tasks, choices, t, records, refused)
		}
		return choices, err
	}
	if k.untuned {
		return from(bestschedule.Sources{}, nil)
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	models, err := k.costModel.models(cache)
	if err != nil {
		return nil, err
	}
	where := recordsFlags{file: k.records, tracker: k.tracker, allowHTTP: k.allowHTTP, log: k.log}
	if where.verify, err = k.verify.key(); err != nil {
		return nil, err
	}
	source, err := where.open(ctx, k.app, false)
	if errors.Is(err, records.ErrMissing) && k.records == "" {
		nothing := func(context.Context, *target.Target) (*transfer.History, error) {
			return transfer.NewHistory(t, nil).Use(models), nil
		}
		return from(bestschedule.Sources{Learn: nothing}, nil)
	}
	if err != nil {
		return nil, err
	}
	defer source.Close()
	_, served := source.(recordsource.Static)
	confirm, err := k.confirm.open(t, tc, cache, served || k.tracker.addr != "", log)
	if err != nil {
		return nil, err
	}
	defer func() { err = k.confirm.close(err) }()
	workloads := []string{""} // all
	if served {
		workloads = workloadDigests(p) // only those of the program are fetched
	}
	return from(bestschedule.Sources{Lookup: source.Best, Learn: learn(source, workloads, models), Confirm: confirm, Own: k.own.allows}, source)
}

// provenance describes the inputs of the package, after the model was loaded.
func (k *compileCommand) provenance(t *target.Target) *aot.Provenance {
	build := thisBuild()
	return &aot.Provenance{
		ModelSHA256: k.model.digest, ModelData: k.model.data, Tilth: build.Version, Commit: build.Commit, Numerics: k.numerics.level.String(),
		DeviceClass: t.DeviceClass(), Target: t.Fingerprint(),
	}
}

// workloadDigests returns the digests of a program's tasks.
func workloadDigests(p *program.Program) (digests []string) {
	for _, task := range p.Tasks {
		digests = append(digests, task.Workload.Digest())
	}
	return digests
}

// learn returns a function that reads the records of workloads, or of all for "", that are useful for a target.
func learn(source recordsource.Source, workloads []string, models transfer.Models) bestschedule.Learn {
	return func(ctx context.Context, t *target.Target) (*transfer.History, error) {
		c := transfer.NewCollector(t)
		var text []byte // only the first record of a workload carries it
		for _, workload := range workloads {
			err := source.List(ctx, "", workload, func(r *tilthv1.Record) error {
				if len(r.GetWorkload()) > 0 {
					text = r.GetWorkload()
				}
				r.Workload = text
				c.Add(r)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		return c.History().Use(models), nil
	}
}

// memoryText describes the memory use of C source.
func memoryText(c *aot.CSource) string {
	return fmt.Sprintf("RAM: %s, of which %s stack (an estimate); flash: %s, of which %s code",
		humanize.Bytes(c.RAMBytes), humanize.Bytes(c.StackBytes), humanize.Bytes(c.FlashBytes), humanize.Bytes(c.CodeBytes))
}

func (k *compileCommand) print(w io.Writer, r compileResult) error {
	if k.asJSON {
		return writeJSON(k.stdout, r)
	}
	_, err := fmt.Fprintf(w, "wrote %s (%s) in %s: %d of %d tasks tuned%s, arena %s, weights %s\ntarget: %s\n",
		r.Package, humanize.Bytes(r.SizeBytes), humanize.Seconds(r.Seconds), r.Tuned, r.Tasks, r.others(), humanize.Bytes(r.ArenaBytes),
		humanize.Bytes(r.WeightsBytes), r.Target)
	if r.C != nil && err == nil {
		_, err = fmt.Fprintln(w, memoryText(r.C))
	}
	if r.Weights != nil && err == nil {
		_, err = fmt.Fprintf(w, "weights: %d of %d in %s\n", r.Weights.Quantised, r.Weights.All, r.Weights.Type)
	}
	if r.Accuracy != nil && err == nil {
		output, worst := r.Accuracy.Worst()
		_, err = fmt.Fprintf(w, "error: %.3g of the largest value of output %q, against strict numerics\n", worst, output)
	}
	if len(r.Untuned) > 0 && err == nil {
		fmt.Fprintf(k.stderr, "not tuned: %s\nrun 'tilth tune' first for a faster package\n", r.Untuned)
	}
	return err
}
