//! Least squares of the relative error.

/// Finds the `N` costs for which `factors · costs` is closest to each value, relative to the value.
///
/// # Panics
/// If the factors do not determine the costs.
pub fn least_squares<const N: usize>(cells: &[([f64; N], f64)]) -> [f64; N] {
    // The normal equations: sums of products of the factors, each cell divided by its value.
    let mut matrix = [[0.0; N]; N];
    let mut right = [0.0; N];
    for (factors, value) in cells {
        let scaled = factors.map(|factor| factor / value);
        for (row, &one) in scaled.iter().enumerate() {
            for (column, &other) in scaled.iter().enumerate() {
                matrix[row][column] += one * other;
            }
            right[row] += one;
        }
    }
    solve(matrix, right)
}

/// Gaussian elimination with the largest pivot first.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for step in 0..N {
        let largest = |&one: &usize, &other: &usize| {
            f64::total_cmp(&matrix[one][step].abs(), &matrix[other][step].abs())
        };
        let pivot = (step..N).max_by(largest).expect("there are rows left");
        matrix.swap(step, pivot);
        right.swap(step, pivot);
        assert!(matrix[step][step].abs() > f64::EPSILON, "the cells do not determine every cost");
        let (done, rest) = matrix.split_at_mut(step + 1);
        let pivot = &done[step];
        for (offset, row) in rest.iter_mut().enumerate() {
            let factor = row[step] / pivot[step];
            for (value, &above) in row.iter_mut().zip(pivot).skip(step) {
                *value -= factor * above;
            }
            right[step + 1 + offset] -= factor * right[step];
        }
    }
    let mut solution = [0.0; N];
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|column| matrix[row][column] * solution[column]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_costs_are_found() {
        let cost = |[a, b, c]: [f64; 3]| 2.0 * a + 0.5 * b + 7.0 * c;
        let cells = [[1.0, 0.0, 0.0], [1.0, 8.0, 1.0], [1.0, 512.0, 3.0], [1.0, 4.0, 9.0]];
        let found = least_squares(&cells.map(|factors| (factors, cost(factors))));
        for (found, expected) in found.into_iter().zip([2.0, 0.5, 7.0]) {
            assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
        }
    }

    #[test]
    fn a_small_value_weighs_as_much_as_a_large_one() {
        let [cost] = least_squares(&[([1.0], 1.0), ([1000.0], 2000.0)]);
        // Minimise (c - 1)² + (c / 2 - 1)²: c = (1 + 1/2) / (1 + 1/4).
        assert!((cost - 1.2).abs() < 1e-12, "{cost}");
    }

    #[test]
    #[should_panic(expected = "do not determine")]
    fn what_is_not_determined_is_not_made_up() {
        least_squares(&[([1.0, 2.0], 1.0), ([2.0, 4.0], 2.0)]);
    }
}
