package expr

import (
	"math"
	"strconv"
	"strings"
)

// Shape is a workload's canonical text taken apart: what is computed, and how large.
type Shape struct {
	// Class is the text without its integers: workloads of one class differ in extents, strides and bounds only.
	Class string
	// Sizes are the integers in their order.
	Sizes []float64
}

// ShapeOf takes the text of a workload apart. Names such as t0 and f32, and floating constants, are of the class.
func ShapeOf(text string) Shape {
	var class strings.Builder
	var s Shape
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		if end == i || inWord(text, i) || end < len(text) && isWord(text[end]) {
			end = wordEnd(text, i)
			class.WriteString(text[i:end])
		} else {
			n, _ := strconv.ParseFloat(text[i:end], 64)
			s.Sizes = append(s.Sizes, n)
			class.WriteByte('#')
		}
		i = end
	}
	s.Class = class.String()
	return s
}

// wordEnd is where the word or the single other character at i ends.
func wordEnd(text string, i int) int {
	if !isWord(text[i]) {
		return i + 1
	}
	for i < len(text) && isWord(text[i]) {
		i++
	}
	return i
}

// inWord reports whether the character at i goes on with a word, such as the exponent of 0x1p-05.
func inWord(text string, i int) bool {
	if i > 1 && (text[i-1] == '+' || text[i-1] == '-') {
		i--
	}
	return i > 0 && isWord(text[i-1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord: letters, digits, and what stands in hexadecimal floating constants.
func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.'
}

// Distance is the mean of the logarithms, base 2, of how many times larger one's sizes are than the other's; infinite
// between classes.
func (s Shape) Distance(to Shape) float64 {
	if s.Class != to.Class || len(s.Sizes) != len(to.Sizes) {
		return math.Inf(1)
	}
	if len(s.Sizes) == 0 {
		return 0
	}
	sum := 0.0
	for k, n := range s.Sizes {
		sum += math.Abs(math.Log2((n + 1) / (to.Sizes[k] + 1)))
	}
	return sum / float64(len(s.Sizes))
}
