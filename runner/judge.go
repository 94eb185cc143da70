package runner

import (
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/tilth-dev/tilth/runner/answer"
)

// judge says whether what one process hands in is right. The process has nothing to compare it with.
type judge struct {
	*results
	memory *answer.Memory
	// set is the data that the inputs hold.
	set int
	// verdicts are those of the kernels.
	verdicts map[int]*verdict
}

// verdict is what was found of a kernel since its turn began.
type verdict struct {
	// asked is how often it was judged; wrong says what was wrong, empty = nothing.
	asked    int
	wrong    string
	relative float64
	// growth is how many times the tolerance the kernel says that it needs.
	growth float64
}

// newJudge gives memory that a process shares room for so many executions' outputs.
func newJudge(r *results, memory *answer.Memory, slots int) (*judge, error) {
	if err := memory.Grow(r.SlotBytes() * int64(slots)); err != nil {
		return nil, err
	}
	return &judge{results: r, memory: memory, verdicts: map[int]*verdict{}}, nil
}

// begin lets a process that has told what it takes the workload for go on.
func (j *judge) begin(proc *process, limit time.Duration) error {
	workload, err := proc.workload(limit)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(*workload, j.Workload) {
		return &infraError{"its workload is not the one of the reference's results"}
	}
	return proc.say(word{op: goOn, seed: j.change()})
}

// seed is that of the data that the inputs hold.
func (j *judge) seed() uint64 { return j.results.seed(j.set) }

// change chooses other data, and returns their seed: a candidate is not timed on what it was verified on, and does not
// know on what.
func (j *judge) change() uint64 {
	j.set = (j.set + 1 + rand.IntN(practiceSets-1)) % practiceSets
	return j.seed()
}

// hear judges outputs that were handed in, and says so.
func (j *judge) hear(proc *process, e event) error {
	v := j.verdicts[e.Index]
	if v == nil {
		v = &verdict{}
		j.verdicts[e.Index] = v
	}
	relative, message := j.Judge(j.memory.Slot(0, j.SlotBytes()), j.results.set(j.set), e.Growth)
	v.asked++
	v.growth = e.Growth
	v.relative = max(v.relative, relative)
	answer := word{op: goOn}
	if message != "" {
		v.wrong, answer.op = message, isWrong
	}
	answer.seed = j.change()
	return proc.say(answer)
}

// forget begins a kernel's turn anew.
func (j *judge) forget(kernel int) { delete(j.verdicts, kernel) }

// leastVerdicts is how often a kernel that is right was judged: before its samples and after them.
const leastVerdicts = 2

// of is what was found of a kernel. ok is false where the harness claims something else.
func (j *judge) of(kernel int, status string) (v verdict, ok bool) {
	if found := j.verdicts[kernel]; found != nil {
		v = *found
	}
	switch status {
	case "ok":
		return v, v.wrong == "" && v.asked >= leastVerdicts
	case "wrong":
		return v, v.wrong != ""
	}
	return v, status == "overrun"
}
