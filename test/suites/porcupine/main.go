// Checks a history of cache, rate limits, locks and limits against what docs/hub.md promises. Each line is a call in
// JSON. A call without a return may have been done at any time after it began, or never.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

const limit = 25

type call struct {
	Kind, Op, Key, Value string
	Output               *string
	Call, Return         int64
}

// A key has the last value that was written. A read gives it, or nothing: a cache may forget.
var cache = porcupine.Model{
	Init: func() interface{} { return "" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		in := input.(call)
		if in.Op == "write" {
			return true, in.Value
		}
		read := output.(string)
		return read == "" || read == state.(string), state
	},
}

// As many pass as the limit says, until the hub ends.
var limits = porcupine.Model{
	Init: func() interface{} { return 0 },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		passed := state.(int)
		switch {
		case input.(call).Kind == "reset":
			return true, 0
		case output == nil: // nobody has heard what the hub said
			return true, min(passed+1, limit)
		case output.(string) == "passed":
			return passed < limit, passed + 1
		default:
			return passed >= limit, passed
		}
	},
}

type held struct {
	by   string // a token
	last int
}

// One holds it at a time, and tokens grow.
var locks = porcupine.Model{
	Init: func() interface{} { return held{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		lock, in := state.(held), input.(call)
		if in.Op == "release" {
			return lock.by == in.Value, held{last: lock.last}
		}
		token, _ := strconv.Atoi(output.(string))
		return lock.by == "" && token > lock.last, held{by: output.(string), last: token}
	},
}

// Who runs with a place of a limit: two at once, in order, so that equal states are equal.
type running [2]string

// As many run at once as the limit has places, and one more never.
var places = porcupine.Model{
	Init: func() interface{} { return running{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		by, in := state.(running), input.(call)
		from, to := "", ""
		if in.Op == "release" {
			from = in.Value
		} else {
			to = output.(string)
		}
		for index, each := range by {
			if each == from {
				by[index] = to
				slices.Sort(by[:])
				return true, by
			}
		}
		return false, state
	},
}

var models = map[string]porcupine.Model{"cache": cache, "limit": limits, "lock": locks, "place": places}

func main() {
	byKey, resets, total := read(os.Args[1])
	operations := map[string]int{}
	unknownEnds, undecided, violations := 0, 0, 0
	for key, calls := range byKey {
		kind := calls[0].Kind
		if kind == "limit" {
			calls = append(calls, overlapping(resets, calls)...)
		}
		var history []porcupine.Operation
		for index, each := range completed(calls) {
			end := each.Return
			if end == 0 {
				end = math.MaxInt64
				unknownEnds++
			}
			var output interface{}
			if each.Output != nil {
				output = *each.Output
			}
			history = append(history, porcupine.Operation{
				ClientId: index, Input: each, Call: each.Call, Output: output, Return: end,
			})
		}
		operations[kind] += len(history)
		switch porcupine.CheckOperationsTimeout(models[kind], history, 30*time.Second) {
		case porcupine.Illegal:
			violations++
			fmt.Printf("not linearizable: %s, %d calls\n", key, len(history))
		case porcupine.Unknown:
			undecided++
			fmt.Printf("not decided within 30 s: %s, %d calls\n", key, len(history))
		}
	}
	fmt.Printf("%d calls recorded; checked on %d keys: %v; %d of unknown end; %d keys violate the docs, %d undecided\n",
		total, len(byKey), operations, unknownEnds, violations, undecided)
	if violations+undecided > 0 || total == 0 {
		os.Exit(1)
	}
}

func read(path string) (map[string][]call, []call, int) {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	byKey, resets, total := map[string][]call{}, []call{}, 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var each call
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			panic(err)
		}
		if each.Kind == "reset" {
			resets = append(resets, each)
			continue
		}
		total++
		byKey[each.Key] = append(byKey[each.Key], each)
	}
	return byKey, resets, total
}

// A read that has no answer says nothing, nor does a lock or a place that was not given. If its holder
// was killed, or has been told that it is lost, it is free at some time after it was given.
func completed(calls []call) []call {
	released := map[string]bool{}
	var all []call
	for _, each := range calls {
		if each.Op == "release" && each.Return != 0 {
			released[each.Value] = true
		}
	}
	for _, each := range calls {
		if each.Return == 0 && each.Op != "write" && each.Op != "count" {
			continue
		}
		all = append(all, each)
		if each.Op == "acquire" && !released[*each.Output] {
			all = append(all, call{Kind: each.Kind, Op: "release", Key: each.Key, Value: *each.Output, Call: each.Return})
		}
	}
	return all
}

func overlapping(resets, calls []call) []call {
	first, last := int64(math.MaxInt64), int64(0)
	for _, each := range calls {
		first, last = min(first, each.Call), max(last, each.Call, each.Return)
	}
	var found []call
	for _, each := range resets {
		if each.Call <= last && each.Return >= first {
			found = append(found, each)
		}
	}
	return found
}
