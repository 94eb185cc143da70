package target

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Class is one kind of core of a machine. big.LITTLE and hybrid processors have several, each a separate target.
type Class struct {
	// Target runs kernels on all cores of the class.
	Target *Target `json:"target"`
	// CPUs lists its logical processors; nil if the machine has a single class.
	CPUs []int `json:"cpus,omitempty"`
}

// Classes returns the core classes of this machine that this process may use, fastest first.
func Classes() ([]Class, error) { return here().classes() }

func (m *machine) classes() ([]Class, error) {
	kinds, err := m.kinds()
	if err != nil {
		return nil, err
	}
	list := make([]Class, len(kinds))
	for k := range kinds {
		if list[k].Target, err = m.target(&kinds[k], 0); err != nil {
			return nil, err
		}
		list[k].CPUs = kinds[k].cpus
	}
	return list, nil
}

// Affinity returns the logical processors of this machine for kernels of the target; see the function Affinity.
func (t *Target) Affinity() []int {
	classes, err := Classes()
	if err != nil {
		return nil // a machine without this information has no classes to choose from
	}
	return Affinity(classes, t)
}

// Affinity returns the logical processors for kernels of a target on a machine with the given classes: those of the
// target's class, or of the fastest if the target matches none. nil means any: the machine has one class, the
// target has more threads than its class has processors, or it is a GPU.
func Affinity(classes []Class, t *Target) []int {
	if len(classes) == 0 || !t.RunsOnCPU() {
		return nil
	}
	k := max(0, slices.IndexFunc(classes, func(c Class) bool { return c.Target.Model() == t.Model() }))
	if t.Threads() > len(classes[k].CPUs) {
		return nil
	}
	return classes[k].CPUs
}

// Choose returns a core class of this machine by its number, the fastest being 0, or by a word of its model, such
// as 0xd05. Zero threads means one per physical core of the class.
func Choose(class string, threads int) (*Target, error) {
	if err := checkThreads(threads); err != nil {
		return nil, err
	}
	return here().choose(class, threads)
}

func (m *machine) choose(class string, threads int) (*Target, error) {
	kinds, err := m.kinds()
	if err != nil {
		return nil, err
	}
	k, err := strconv.Atoi(class)
	if err != nil {
		k = slices.IndexFunc(kinds, func(k kind) bool { return slices.Contains(strings.Fields(k.model), class) })
	}
	if k < 0 || k >= len(kinds) {
		return nil, fmt.Errorf("target: this machine has no class of cores %q; it has %s", class, listed(kinds))
	}
	if most := m.most(&kinds[k]); threads > most {
		return nil, fmt.Errorf("target: %d threads asked for, but the class of cores %s has %d processors: %w", threads, class, most, ErrThreads)
	}
	return m.target(&kinds[k], threads)
}

// listed describes kinds by number and model.
func listed(kinds []kind) string {
	names := make([]string, len(kinds))
	for k := range kinds {
		names[k] = fmt.Sprintf("%d (%s)", k, kinds[k].model)
	}
	return strings.Join(names, ", ")
}

// most returns the number of threads that a kind's processors run concurrently.
func (m *machine) most(k *kind) int {
	if k.cpus == nil {
		return m.logical
	}
	return min(m.logical, len(k.cpus))
}

// kind is a set of equal processors of a machine.
type kind struct {
	// first describes the first of them, whose number is lead.
	first cpuinfo
	lead  int
	model string
	// capacity orders kinds: the kernel's capacity measure, or the highest clock.
	capacity int64
	// cpus lists all of them; nil means all of the machine.
	cpus []int
}

// kinds groups processors by model and capacity, fastest first. It returns an error if the machine's architecture is
// unknown.
func (m *machine) kinds() ([]kind, error) {
	if _, ok := goArches[m.goarch]; !ok {
		return nil, fmt.Errorf("target: this machine's architecture %s is not supported; name another target", m.goarch)
	}
	processors, err := readCPUInfo(m.root)
	if err != nil {
		return nil, err
	}
	var list []kind
	rank := m.ranks()
	for k, info := range processors {
		number, err := strconv.Atoi(info["processor"])
		if err != nil {
			number = k
		}
		if m.allowed != nil && !slices.Contains(m.allowed, number) {
			continue
		}
		one := kind{first: info, lead: number, cpus: []int{number}}
		one.model, one.capacity = rank(info, number)
		same := slices.IndexFunc(list, func(o kind) bool { return o.model == one.model && o.capacity == one.capacity })
		if same < 0 {
			list = append(list, one)
		} else {
			list[same].cpus = append(list[same].cpus, number)
		}
	}
	switch len(list) {
	case 0:
		list = []kind{{first: processors[0], model: processors[0].model(goArches[m.goarch])}}
	case 1:
		list[0].cpus = nil
	}
	slices.SortStableFunc(list, func(a, b kind) int { return cmp.Compare(b.capacity, a.capacity) })
	tellApart(list)
	return list, nil
}

// ranks returns a function that returns a processor's model and capacity. Hybrid x86 processors have one model and
// two kinds of cores, which Linux lists; clocks of equal cores vary slightly there.
func (m *machine) ranks() func(info cpuinfo, number int) (model string, capacity int64) {
	arch := goArches[m.goarch]
	if arch != X86 {
		return func(info cpuinfo, number int) (string, int64) { return info.model(arch), m.capacity(number) }
	}
	efficient, err := ParseCPUs(filesystem.Text(m.root, "sys/devices/cpu_atom/cpus"))
	var model string
	return func(info cpuinfo, number int) (string, int64) {
		model = cmp.Or(model, info.model(arch))
		if err == nil && slices.Contains(efficient, number) {
			return model, 0
		}
		return model, 1
	}
}

// tellApart adds the capacity to the names of slower kinds of the same model.
func tellApart(list []kind) {
	for k := range list {
		if slices.ContainsFunc(list[:k], func(o kind) bool { return o.model == list[k].model }) {
			list[k].model += fmt.Sprintf(" capacity %d", list[k].capacity)
		}
	}
}

// capacity returns the speed of a processor relative to the machine's others, as reported by Linux, or else its
// highest clock in kHz; 0 if neither is known.
func (m *machine) capacity(number int) int64 {
	dir := fmt.Sprintf("%s/cpu%d/", cpuDir, number)
	for _, name := range []string{"cpu_capacity", "cpufreq/cpuinfo_max_freq"} {
		if n, err := strconv.ParseInt(filesystem.Text(m.root, dir+name), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// physicalCores counts those of the kind's processors that are the first of their core's siblings; all of them if
// this is unknown.
func (k *kind) physicalCores(root fs.FS, logical int) int {
	cores := map[string]bool{}
	for _, dir := range k.dirs(root) {
		if siblings := filesystem.Text(root, dir+"/topology/thread_siblings_list"); siblings != "" {
			cores[siblings] = true
		}
	}
	if len(cores) == 0 {
		return logical
	}
	return min(len(cores), logical)
}

// dirs returns the sysfs directories of the kind's processors.
func (k *kind) dirs(root fs.FS) (dirs []string) {
	if k.cpus == nil {
		dirs, _ = fs.Glob(root, cpuDir+"/cpu[0-9]*") // the pattern is valid
	}
	for _, number := range k.cpus {
		dirs = append(dirs, fmt.Sprintf("%s/cpu%d", cpuDir, number))
	}
	return dirs
}
