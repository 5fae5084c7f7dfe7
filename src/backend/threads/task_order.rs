//! The order in which the tasks of a parallel step begin, if it may be any.

/// Returns the i-th of `tasks` tasks if they are divided into `lanes` runs of consecutive tasks, and each run in turn
/// begins its next task.
///
/// For tasks that write consecutive parts of an array. The system clears a page of a new array (up to 2 MiB) when it is
/// first written, and all threads that write this page wait. In this order they write different pages.
pub fn nth_in_lanes(i: usize, tasks: usize, lanes: usize) -> usize {
    let lanes = lanes.clamp(1, tasks);
    let (place, lane) = (i / lanes, i % lanes);
    // The first lanes have one more task.
    lane * (tasks / lanes) + lane.min(tasks % lanes) + place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_lanes_are_all_tasks() {
        for tasks in 1..70 {
            for lanes in 1..=tasks + 1 {
                let mut order: Vec<usize> = (0..tasks).map(|i| nth_in_lanes(i, tasks, lanes)).collect();
                assert!(lanes == 1 || tasks == 1 || order[1] >= tasks / lanes);
                order.sort_unstable();
                assert!(order.into_iter().eq(0..tasks), "{tasks} tasks in {lanes} lanes");
            }
        }
    }
}
