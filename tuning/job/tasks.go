package job

import (
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/tuning/trials"
)

// Task is a task of one or several models under a name that no other of them has.
type Task struct {
	// Index is the task's place among those of the models.
	Index int
	Name  string
	// Weight is what one execution counts: how often the models execute it, each times the model's own weight.
	Weight float64
	program.Task
}

// Model is a model's tasks, and what one execution of the model counts.
type Model struct {
	Tasks  []program.Task
	Weight float64
}

// Join lists the tasks of several models, in their order. Those with equal workloads are one, with their weights added
// up.
func Join(models ...Model) []Task {
	taken, at := map[string]int{}, map[string]int{}
	var tasks []Task
	for _, m := range models {
		for _, t := range m.Tasks {
			digest := t.Workload.Digest()
			weight := m.Weight * t.Runs()
			if i, known := at[digest]; known {
				tasks[i].Weight += weight
				tasks[i].Count += t.Count
				continue
			}
			at[digest] = len(tasks)
			tasks = append(tasks, Task{Index: len(tasks), Name: trials.UniqueName(taken, t.Name), Weight: weight, Task: t})
		}
	}
	return tasks
}
