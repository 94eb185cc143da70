package expr

import (
	"math"
	"strconv"
	"strings"
)

// Shape splits a workload's canonical text into its structure and its sizes.
type Shape struct {
	// Class is the text without its integers: workloads of one class differ in extents, strides and bounds only.
	Class string
	// Sizes lists the integers in order.
	Sizes []float64
}

// ShapeOf splits the text of a workload. Names such as t0 and f32, and floating constants, belong to the class.
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

// wordEnd returns the end of the word or the single other character at i.
func wordEnd(text string, i int) int {
	if !isWord(text[i]) {
		return i + 1
	}
	for i < len(text) && isWord(text[i]) {
		i++
	}
	return i
}

// inWord reports whether the character at i continues a word, such as the exponent of 0x1p-05.
func inWord(text string, i int) bool {
	if i > 1 && (text[i-1] == '+' || text[i-1] == '-') {
		i--
	}
	return i > 0 && isWord(text[i-1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord reports whether c is a letter, a digit, or part of a hexadecimal floating constant.
func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.'
}

// Distance returns the mean absolute binary logarithm of the ratios of sizes; infinite between classes.
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
