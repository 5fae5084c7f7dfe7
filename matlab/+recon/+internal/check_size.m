function rest = check_size(array, lead, next, more, text)
%CHECK_SIZE  Checks the size of an array, and returns the dimensions that follow the required ones. For internal use.
%   The size must begin with lead, or with one dimension of prod(lead), and then next. Everything else is an error,
%   because an array with its dimensions in a different order has the same number of elements. more is true if
%   dimensions may follow.
%   text is {name of the array in messages, its variable, whose sizes these are}. A fourth text is the variable of the
%   trajectory, if lead is the shape of its samples: the message then also says how to permute the trajectory.
sizes = size(array);
rest = behind(sizes, [lead, next]);
if isequal(rest, -1)
    rest = behind(sizes, [prod(lead), next]);
end
if isequal(rest, -1) || ~more && ~isempty(rest)
    refuse(sizes, lead, next, more, text);
end
end

function rest = behind(sizes, wanted)
% -1 if the sizes do not begin with the required ones.
count = numel(wanted);
sizes(end + 1:count) = 1;
rest = -1;
if isequal(sizes(1:count), wanted)
    rest = recon.internal.trim_ones(sizes(count + 1:end));
end
end

function refuse(sizes, lead, next, more, text)
if more
    verb = 'begin with';
    column = recon.internal.size_text([prod(lead), next]);
else
    verb = 'be';
    column = recon.internal.size_text(recon.internal.full_size(prod(lead), next));
end
needed = recon.internal.size_text([lead, next]);
if numel(lead) > 1
    needed = sprintf('%s or %s', needed, column);
end
message = sprintf('%s: the size is %s, it must %s %s (%s)', text{1}, recon.internal.size_text(sizes), verb, needed, ...
    text{3});
remedy = order_of(sizes, [lead, next], more);
if isempty(remedy)
    remedy = order_of(sizes, [prod(lead), next], more);
end
if isempty(remedy) && numel(sizes) == 2 && sizes(1) == 1 && mod(sizes(2), prod(lead)) == 0
    remedy = [2 1];
end
remedies = {};
if ~isempty(remedy)
    remedies = {sprintf('permute(%s, %s)', text{2}, mat2str(remedy))};
end
if numel(text) > 3 && numel(sizes) >= numel(lead)
    other = order_of(lead, sizes(1:numel(lead)), false);
    if ~isempty(other)
        remedies{end + 1} = sprintf('permute(%s, %s) where the trajectory is what is in another order', text{4}, ...
            mat2str([other, numel(lead) + 1]));
    end
end
if ~isempty(remedies)
    message = sprintf('%s: %s', message, strjoin(remedies, ', or '));
end
error('recon:SizeMismatch', '%s', message);
end

function order = order_of(sizes, wanted, more)
% Returns the permutation from these sizes to the required ones, or [] if no permutation exists.
given = numel(sizes);
sizes(end + 1:max(given, numel(wanted)) + sum(wanted == 1)) = 1;
left = 1:numel(sizes);
order = [];
for n = wanted
    found = left(find(sizes(left) == n, 1));
    if isempty(found)
        order = [];
        return
    end
    order(end + 1) = found; %#ok<AGROW>
    left(left == found) = [];
end
order = [order, left];
while numel(order) > given && order(end) == numel(order)
    order(end) = [];
end
if ~more && any(sizes(left) ~= 1) || isequal(order, 1:numel(order))
    order = [];
end
end
