# Units and money by the values of one column; of rows alone whose other column has a value, where one is named.
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
by in column && (where == "" || $column[where] == is) {
  units[$column[by]] += $4
  cents[$column[by]] += $4 * $5
}
END {
  if (!(by in column)) { print "there is no column " by > "/dev/stderr"; exit 1 }
  for (value in units) printf "%s: %d units, %.2f\n", value, units[value], cents[value] / 100 | "sort"
}
