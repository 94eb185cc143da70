package runner

import (
	"math/rand/v2"
	"reflect"
	"time"
)

// judge verifies the outputs of one process. The process itself has no reference data.
type judge struct {
	*results
	memory *Memory
	// set is the index of the current input data.
	set int
	// verdicts holds the verdicts by kernel.
	verdicts map[int]*verdict
}

// verdict is the result of verifying a kernel since its turn started.
type verdict struct {
	// asked counts the verifications. wrong describes an error, or is empty.
	asked    int
	wrong    string
	relative float64
	// growth is the multiple of the tolerance that the kernel declares.
	growth float64
}

// newJudge sizes the memory shared with a process for a number of executions' outputs.
func newJudge(r *results, memory *Memory, slots int) (*judge, error) {
	if err := memory.Grow(r.SlotBytes() * int64(slots)); err != nil {
		return nil, err
	}
	return &judge{results: r, memory: memory, verdicts: map[int]*verdict{}}, nil
}

// begin lets a process continue after it has described the workload.
func (j *judge) begin(proc *process, limit time.Duration) error {
	workload, err := proc.workload(limit)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(*workload, j.Workload) {
		return &infraError{"its workload is not the one of the reference's results"}
	}
	return proc.send(command{op: cmdContinue, seed: j.change()})
}

// seed returns the seed of the current input data.
func (j *judge) seed() uint64 { return j.results.seed(j.set) }

// change selects new input data and returns their seed. A candidate is timed on other data than it was
// verified on, and cannot predict either.
func (j *judge) change() uint64 {
	j.set = (j.set + 1 + rand.IntN(practiceSets-1)) % practiceSets
	return j.seed()
}

// verify verifies submitted outputs and sends the result.
func (j *judge) verify(proc *process, e event) error {
	v := j.verdicts[e.Index]
	if v == nil {
		v = &verdict{}
		j.verdicts[e.Index] = v
	}
	relative, message := j.Judge(j.memory.Slot(0, j.SlotBytes()), j.results.set(j.set), e.Growth)
	v.asked++
	v.growth = e.Growth
	v.relative = max(v.relative, relative)
	answer := command{op: cmdContinue}
	if message != "" {
		v.wrong, answer.op = message, cmdWrong
	}
	answer.seed = j.change()
	return proc.send(answer)
}

// minVerdicts is the minimum number of verifications of a correct kernel: before and after its samples.
const minVerdicts = 2

// of returns the verdict on a kernel. ok is false if the harness's status contradicts it.
func (j *judge) of(kernel int, status string) (v verdict, ok bool) {
	if found := j.verdicts[kernel]; found != nil {
		v = *found
	}
	switch status {
	case "ok":
		return v, v.wrong == "" && v.asked >= minVerdicts
	case "wrong":
		return v, v.wrong != ""
	}
	return v, status == "overrun"
}
