package target

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// cpuinfo is an entry of /proc/cpuinfo.
type cpuinfo map[string]string

// readCPUInfo reads the entries of all processors, at least one.
func readCPUInfo(root fs.FS) (list []cpuinfo, err error) {
	data, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return nil, fmt.Errorf("target: reading the processor's description: %w", err)
	}
	info := cpuinfo{}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, ":")
		if ok {
			info[strings.TrimSpace(key)] = strings.TrimSpace(value)
		} else if len(info) > 0 { // an empty line ends an entry
			list, info = append(list, info), cpuinfo{}
		}
	}
	list = append(list, info)
	// Boards append entries that describe no processor.
	processors := slices.DeleteFunc(slices.Clone(list), func(c cpuinfo) bool { return c["processor"] == "" })
	if len(processors) == 0 {
		processors = list[:1]
	}
	return processors, nil
}

// model returns the processor model. Virtual machines hide marketing names, so the identifying numbers are included.
func (c cpuinfo) model(archName string) string {
	switch archName {
	case X86:
		name := strings.NewReplacer("(R)", "", "(TM)", "", " CPU", "").Replace(c["model name"])
		return strings.Join(strings.Fields(name), " ") + " " + c["cpu family"] + "." + c["model"] + "." + c["stepping"]
	case ARM, ARM32:
		return strings.TrimSpace(c["CPU implementer"] + " " + c["CPU part"] + " r" + c["CPU variant"] + "p" + c["CPU revision"])
	default:
		return c["uarch"]
	}
}

func (c cpuinfo) flags(archName string) []string {
	switch archName {
	case X86:
		return strings.Fields(c["flags"])
	case ARM, ARM32:
		return strings.Fields(c["Features"])
	default: // the letter v may denote a draft of the extension, so it is ignored
		_, names, _ := strings.Cut(c["isa"], "_")
		return strings.Split(names, "_")
	}
}
