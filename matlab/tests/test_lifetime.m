function tests = test_lifetime()
%TEST_LIFETIME  Plans are freed with their last operator, or by delete. Memory does not grow.
tests = {@freed_with_the_last_copy, @failed_plans_leave_nothing, @nothing_grows, @errors_do_not_grow_either};
end

function freed_with_the_last_copy()
before = recon_mex('plans');
E = recon.Encoding(zeros(10, 2), [8 8]);
F = E;
G = F';
check(recon_mex('plans') == before + 1, 'copies share the plan');
clear E F
check(recon_mex('plans') == before + 1, 'one is left');
check(isequal(size(G * ones(10, 1)), [8 8]), 'and works');
clear G
check(recon_mex('plans') == before, 'the last is gone');
recon.fhd(zeros(10, 2), ones(10, 1), [8 8]);
check(recon_mex('plans') == before, 'functions keep none');
E = recon.Encoding(zeros(10, 2), [8 8]);
E = recon.Encoding(zeros(10, 2), [9 9]);
check(recon_mex('plans') == before + 1, 'overwriting frees');
delete(E);
check(recon_mex('plans') == before, 'delete frees');
end

function failed_plans_leave_nothing()
before = recon_mex('plans');
for i = 1:10
    check_error(@() recon.Encoding(NaN(10, 2), [8 8]), 'recon:NotFinite');
    check_error(@() recon.cg(zeros(10, 2), NaN(10, 1), [8 8]), 'recon:NotFinite');
end
check(recon_mex('plans') == before, 'nothing is left of them');
end

function nothing_grows()
k = recon.trajectory.radial(40, 64);
d = recon.phantom.kspace(k, [32 32], 'Coils', 2);
maps = recon.phantom.coilmaps([32 32], 2);
    function once()
        E = recon.Encoding(k, [], 'Maps', maps, 'Weights', 'ramp');
        y = E * ones(32);
        x = E' * y;
        E.normal(x);
        recon.cg(E, d, 'Iterations', 2, 'Progress', @(p) 0);
        recon.grid(k, single(d), [32 32]);
        recon.metrics(abs(x), ones(32));
        E.info();
    end
measure(@once, 1000);
end

function errors_do_not_grow_either()
k = recon.trajectory.radial(40, 64);
E = recon.Encoding(k, [32 32]);
bad = NaN(64, 40);
    function once()
        attempt(@() E' * bad);
        attempt(@() recon.Encoding(k, [32 32], 'Tolerance', 7));
        attempt(@() recon.cg(k, ones(64, 40), [32 32], 'Progress', @(p) error('mine:stop', 'enough')));
        attempt(@() recon.cg(E, ones(64, 40), 'Prior', sparse(3)));
    end
measure(@once, 1000);
end

function attempt(f)
try
    f();
catch
    return
end
error('recontest:noerror', 'no error');
end

function measure(f, count)
% Growth of the process in bytes, from /proc. Without /proc it only makes the calls.
for i = 1:100
    f();
end
before = resident();
for i = 1:count
    f();
end
growth = resident() - before;
fprintf('  %d times: %+.1f kB\n', count, growth / 1e3);
check(recon_mex('plans') <= 1, 'no plan is left');
check(growth < 2e6, 'memory does not grow');
end

function bytes = resident()
bytes = 0;
if exist('/proc/self/statm', 'file')
    pages = sscanf(fileread('/proc/self/statm'), '%f');
    bytes = pages(2) * 4096;
end
end
